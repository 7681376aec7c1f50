import { type Duration, durationMs } from '../core/duration.ts'
import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { lockMemoryOf, type NotedKey } from '../core/lock-memory.ts'
import {
  beginOnce,
  forgetOnce,
  onceLock,
  type OnceNames,
  storeOnce,
} from '../engines/postgres/once.ts'
import { answerOf, callFunction, schemaMissing, sumOverPrimaries } from '../tx/call-function.ts'
import { isTraced, traced } from '../core/tracing.ts'
import { type ResolveOptions, resolveMs, untilTold } from '../tx/ask-again.ts'
import { type RunOptions, runTransaction } from '../tx/run.ts'
import { tellOnce } from './once-events.ts'
import { fingerprintOf, keyText } from './names.ts'

export {
  type ExpressRequest,
  type ExpressResponse,
  type FastifyReply,
  type FastifyRequest,
  type HttpAnswer,
  type IdempotencyOptions,
  idempotentExpress,
  idempotentFastify,
  idempotentFetch,
} from './http.ts'

/** Settings of the room. */
export interface OnceRoomOptions extends ResolveOptions {
  /** Where its table is. @defaultValue 'holdfast' */
  readonly schema?: string
}

/** Options of one call. */
export interface OnceOptions {
  /** What keys are unique within, and what a shard is chosen by. @defaultValue the key itself */
  readonly scope?: string
  /** How long the result is remembered: longer than anybody repeats the call. @defaultValue '30 days' */
  readonly keep?: Duration
  /** What came with the key: text, bytes or plain data. Something else under the same key is refused. */
  readonly payload?: unknown
  /** `false`: do not wait for a duplicate that is under way, say so. @defaultValue true */
  readonly wait?: boolean
}

/** The body ran, now or before. */
export interface OnceDone<T> {
  readonly ok: true
  /** What the body returned, as JSON gives it back: the same for everyone, the first one included. */
  readonly result: T
  /** The body did not run now. */
  readonly replayed: boolean
}

/** The body did not run, and nothing was changed. */
export interface OnceRefused<R extends 'in-progress' | 'mismatch'> {
  readonly ok: false
  /** Somebody is at it right now; or the key was used for something else. */
  readonly reason: R
}

/** What can come back, by the options that were given. */
export type OnceAnswer<T, O> =
  | OnceDone<T>
  | (O extends { readonly payload: unknown } ? OnceRefused<'mismatch'> : never)
  | (O extends { readonly wait: false } ? OnceRefused<'in-progress'> : never)

/** Work that is done once per key, however often it is asked for. */
export interface Once<Tx> {
  /**
   * Runs the body in a transaction of its own, unless that was done before under this key: then its
   * stored result is returned. A duplicate that comes meanwhile waits for it. If the body throws, nothing
   * stays, and the next call runs it again.
   *
   * @example
   * const { result } = await hf.once(`stripe:${event.id}`, async (tx) => {
   *   await tx.query('UPDATE orders SET paid = true WHERE id = $1', [event.order])
   *   return { accepted: true }
   * })
   * @throws ONCE_KEY_INVALID, ONCE_RESULT_INVALID, SCHEMA_MISSING, and those of `tx.run`
   */
  <T, O extends OnceOptions & RunOptions = OnceOptions>(
    key: string,
    body: (tx: Tx) => Promise<T> | T,
    options?: O,
  ): Promise<OnceAnswer<T, O>>
  /**
   * The same in the caller's transaction: work and memory of it commit together, or neither does. If the
   * body throws, its writes are undone and the transaction can go on.
   *
   * @throws ONCE_OUTSIDE_TRANSACTION, ONCE_KEY_INVALID, ONCE_RESULT_INVALID, SCHEMA_MISSING
   */
  <T, O extends OnceOptions = OnceOptions>(
    tx: Tx,
    key: string,
    body: (tx: Tx) => Promise<T> | T,
    options?: O,
  ): Promise<OnceAnswer<T, O>>
  /**
   * Forgets keys whose time is up, at most `limit`, and says how many. Run it every so often, for instance
   * by a schedule.
   *
   * @throws OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  forget(options?: { readonly limit?: number }): Promise<number>
}

type Body<Tx> = (tx: Tx) => unknown
type AnyAnswer = OnceDone<unknown> | OnceRefused<'in-progress' | 'mismatch'>

/** Work that is done once, over a driver. */
export function createOnce<Tx>(
  driver: Driver<Tx>,
  { schema = 'holdfast', ...resolving }: OnceRoomOptions = {},
): Once<Tx> {
  const forMs = resolveMs(resolving)
  const memory = lockMemoryOf(driver)
  const alone = async (key: string, body: Body<Tx>, options: OnceOptions & RunOptions) => {
    const call = callOf(key, options)
    memory.note(onceKey(call.names))
    let { wait } = call
    let retry: Pick<RunOptions, 'retry'> = {}
    // Of this attempt: whether the key has told about those before it, and whether COMMIT was sent.
    let [told, ended] = [false, false]
    const attempt = (): Promise<AnyAnswer> => {
      ;[told, ended] = [false, false]
      return runTransaction(
        driver,
        async (transaction) => {
          ended = false
          const begun = await inside(transaction, beginOnce(schema, call.names, wait))
          told = true
          const answer = knownAnswer(begun) ?? (await work(transaction, body, call))
          ended = true
          return answer
        },
        { isolation: 'read committed', scopes: [call.names.scope], ...options, ...retry },
        undefined,
        'once',
      )
    }
    if (options.retry === false) return await attempt()
    // A lost COMMIT is asked for by its key. Whoever is at it then may be our own first time.
    return await untilTold(attempt, {
      forMs,
      isSure: () => told && !ended,
      onDoubt() {
        wait = true
        retry = { retry: { ...options.retry, budgetMs: forMs } }
      },
    })
  }
  const joined = async (tx: Tx, key: string, body: Body<Tx>, options: OnceOptions) => {
    const call = callOf(key, options)
    memory.note(onceKey(call.names))
    const begin = beginOnce(schema, call.names, call.wait)
    const begun = await callFunction(driver, tx, begin, 'ONCE_OUTSIDE_TRANSACTION')
    const known = knownAnswer(begun)
    if (known !== undefined) return known
    return await driver.join(tx).nested(async (inner) => await work(inner, body, call))
  }
  const work = async (
    transaction: Transaction<Tx>,
    body: Body<Tx>,
    { names, keepMs }: Call,
  ): Promise<AnyAnswer> => {
    const json = jsonOf(await body(transaction.native))
    await inside(transaction, storeOnce(schema, names, json, keepMs))
    return { ok: true, result: valueOf(json), replayed: false }
  }
  const once = async (...args: readonly unknown[]): Promise<AnyAnswer> => {
    if (!isTraced()) return await told(args)
    return await traced(
      'once',
      () => ({}),
      async (span) => {
        const answer = await told(args)
        span?.set({ 'holdfast.outcome': outcomeOf(answer) })
        return answer
      },
    )
  }
  const told = async (args: readonly unknown[]): Promise<AnyAnswer> => {
    const began = performance.now()
    const answer = await run(args)
    tellOnce(outcomeOf(answer), args, began)
    return answer
  }
  const run = async (args: readonly unknown[]): Promise<AnyAnswer> => {
    if (typeof args[1] === 'function') {
      const [key, body, options = {}] = args as [string, Body<Tx>, (OnceOptions & RunOptions)?]
      return await alone(key, body, options)
    }
    const [tx, key, body, options = {}] = args as [Tx, string, Body<Tx>, OnceOptions?]
    return await joined(tx, key, body, options)
  }
  const forget: Once<Tx>['forget'] = async ({ limit = 1_000 } = {}) => {
    if (!Number.isSafeInteger(limit) || limit < 1 || limit > 10_000) {
      throw holdfastError('OPTION_INVALID', {
        details: { option: 'limit', subject: 'limit must be a whole number from 1 to 10000' },
      })
    }
    return await sumOverPrimaries(driver, forgetOnce(schema, limit))
  }
  return Object.assign(once, { forget }) as Once<Tx>
}

function outcomeOf(answer: AnyAnswer): 'ran' | 'replayed' | 'mismatch' | 'in-progress' {
  if (!answer.ok) return answer.reason
  return answer.replayed ? 'replayed' : 'ran'
}

interface Call {
  readonly names: OnceNames
  readonly wait: boolean
  readonly keepMs: number
}

function callOf(key: string, { scope = key, keep = '30 days', payload, wait }: OnceOptions): Call {
  return {
    names: {
      key: keyText(key, 'key'),
      scope: keyText(scope, 'scope'),
      fingerprint: payload === undefined ? undefined : fingerprintOf(payload),
    },
    wait: wait !== false,
    keepMs: durationMs(keep, 'keep'),
  }
}

/** What the lock under which the work is done is called. */
function onceKey(names: OnceNames): NotedKey {
  const { key, scope } = names
  const namespace = 'holdfast-once'
  return {
    name: scope === key ? `${namespace}:${key}` : `${namespace}:${scope}:${key}`,
    namespace,
    lock: { kind: 'bigint', id: onceLock(names) },
  }
}

async function inside<Tx>(
  transaction: Transaction<Tx>,
  { plain }: ReturnType<typeof beginOnce>,
): Promise<string | null> {
  try {
    return answerOf(await transaction.query(plain))
  } catch (error) {
    throw schemaMissing(error) ?? error
  }
}

/** Nothing if the body has to run. */
function knownAnswer(answer: string | null): AnyAnswer | undefined {
  if (answer === 'busy') return { ok: false, reason: 'in-progress' }
  if (answer === 'mismatch') return { ok: false, reason: 'mismatch' }
  if (answer === 'done') return { ok: true, result: undefined, replayed: true }
  if (answer?.startsWith('done:') !== true) return undefined
  return { ok: true, result: valueOf(answer.slice(5)), replayed: true }
}

function jsonOf(result: unknown): string | undefined {
  try {
    return JSON.stringify(result)
  } catch (cause) {
    throw holdfastError('ONCE_RESULT_INVALID', { cause })
  }
}

function valueOf(json: string | undefined): unknown {
  return json === undefined ? undefined : JSON.parse(json)
}
