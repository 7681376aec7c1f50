import { type FunctionCall, functionCall } from './function-call.ts'

/** A key, what it is unique within, and the hash of what came with it. */
export interface OnceNames {
  readonly key: string
  readonly scope: string
  readonly fingerprint: string | undefined
}

export function beginOnce(schema: string, names: OnceNames, wait: boolean): FunctionCall {
  return functionCall(schema, 'begin_once', [
    ['text', names.key],
    ['text', names.scope],
    ['text', names.fingerprint ?? null],
    ['boolean', wait],
  ])
}

/** `result` is JSON, or `undefined` for no result at all. */
export function storeOnce(
  schema: string,
  names: OnceNames,
  result: string | undefined,
  keepMs: number,
): FunctionCall {
  return functionCall(schema, 'store_once', [
    ['text', names.key],
    ['text', names.scope],
    ['text', names.fingerprint ?? null],
    ['text', result ?? null],
    ['bigint', keepMs],
  ])
}

export function forgetOnce(schema: string, most: number): FunctionCall {
  return functionCall(schema, 'forget_once', [['integer', most]])
}
