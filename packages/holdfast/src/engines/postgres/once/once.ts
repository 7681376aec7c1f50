import { hash } from 'node:crypto'
import type { OnceNames } from '../../../once/engine.ts'
import { type FunctionCall, functionCall } from '../sql/function-call.ts'
import type { LimitRequest } from '../tx/wait-limit.ts'

/** Without a `limit` it does not wait. */
export function beginOnce(
  schema: string,
  names: OnceNames,
  limit: LimitRequest | undefined,
): FunctionCall {
  return functionCall(
    schema,
    'begin_once',
    [
      ['text', names.key],
      ['text', names.scope],
      ['text', names.fingerprint ?? null],
      ['bool', limit !== undefined],
    ],
    [names.scope],
    limit,
  )
}

/** `result` is JSON, or `undefined` for no result at all. */
export function storeOnce(
  schema: string,
  names: OnceNames,
  result: string | undefined,
  keepMs: number,
): FunctionCall {
  return functionCall(
    schema,
    'store_once',
    [
      ['text', names.key],
      ['text', names.scope],
      ['text', names.fingerprint ?? null],
      ['text', result ?? null],
      ['int8', keepMs],
    ],
    [names.scope],
  )
}

export function forgetOnce(schema: string, most: number): FunctionCall {
  return functionCall(schema, 'forget_once', [['int4', most]])
}

/** The number that `begin_once` locks, worked out as in `sql/internal/once_lock.sql`. */
export function onceLock({ key, scope }: Pick<OnceNames, 'key' | 'scope'>): bigint {
  const text = `holdfast:once:${Array.from(scope).length}:${scope}${key}`
  return BigInt.asIntN(64, BigInt(`0x${hash('sha256', text).slice(0, 16)}`))
}
