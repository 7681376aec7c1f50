import { type Duration, durationMs } from '../core/duration.ts'
import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { lockMemoryOf, type NotedKey } from '../core/lock-memory.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { atMost, defaultTerms, type Wait, type WaitTerms, waitTerms } from '../core/wait.ts'
import {
  beginOnce,
  forgetOnce,
  onceLock,
  type OnceNames,
  storeOnce,
} from '../engines/postgres/once/once.ts'
import {
  answerOf,
  callFunction,
  schemaMissing,
  sumOverPrimaries,
} from '../engines/postgres/sql/call-function.ts'
import { isTraced, traced } from '../core/tracing.ts'
import { type ResolveOptions, resolveMs, untilTold } from '../tx/ask-again.ts'
import { type RunOptions, runTransaction, type TxOptions, withTxDefaults } from '../tx/run.ts'
import { holdersOf, lookAtHolders } from '../engines/postgres/locks/look-at-holders.ts'
import { inTurn } from '../tx/in-turn.ts'
import type { JsonOf } from './json-of.ts'
import { tellOnce } from './once-events.ts'
import { jsonOf, valueOf } from './stored-result.ts'
import { fingerprintOf, keyText } from './names.ts'
import { assertFunction } from '../core/given.ts'
import { optionsGiven } from '../core/known-options.ts'
import { forgetOptions, onceAloneOptions, onceOptions, onceRoomOptions } from './known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

export {
  type ExpressRequest,
  type ExpressResponse,
  type FastifyReply,
  type FastifyRequest,
  type IdempotencyOptions,
  idempotentAnswer,
  idempotentExpress,
  idempotentFastify,
  idempotentFetch,
  type ParsedRequest,
} from './http.ts'

export type { HttpAnswer } from '../core/http-answer.ts'
export type { JsonOf } from './json-of.ts'

/** Settings of the room. */
export interface OnceRoomOptions extends ResolveOptions {
  /** How long duplicates wait that do not say so themselves. @defaultValue '2 s' */
  readonly wait?: Wait
  /** Defaults of the transactions that it opens. */
  readonly tx?: TxOptions
  /** Where its table is. @defaultValue 'holdfast' */
  readonly schema?: string
}

/** Options of one call. */
export interface OnceOptions {
  /** What keys are unique within, and what a shard is chosen by. @defaultValue the key itself */
  readonly scope?: string
  /** How long the result is remembered: longer than anybody repeats the call. @defaultValue '30 days' */
  readonly keep?: Duration
  /**
   * What came with the key: text, bytes or plain data, which is what JSON can hold. Something else under the
   * same key is refused.
   */
  readonly payload?: unknown
  /**
   * How long to wait for a duplicate that is under way; `'nowait'` does not, and says so. `false` is the old
   * name of `'nowait'`, `true` that of the default, or of `'2 s'` where the default is not to wait.
   * @defaultValue '2 s', or what `createHoldfast` was given
   */
  readonly wait?: Wait | OldWait
}

/** @deprecated Say how long, or `'nowait'`. */
type OldWait = boolean

/** The body ran, now or before. */
export interface OnceDone<T> {
  readonly ok: true
  /** What the body returned, as JSON gives it back (see `JsonOf`: a date is text): the same for everyone, the first one included. */
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
  | (O extends unknown ? ('payload' extends keyof O ? OnceRefused<'mismatch'> : never) : never)
  | (O extends { readonly wait?: infer W } ? NotWaited<W> : never)

/** What a wait can add: nothing, unless it may turn out to be none, as `'0 s'` is. */
type NotWaited<W> = W extends false
  ? OnceRefused<'in-progress'>
  : W extends string | number
    ? `${W}` extends 'inherit' | `${string}${DigitButZero}${string}`
      ? never
      : OnceRefused<'in-progress'>
    : never

type DigitButZero = 1 | 2 | 3 | 4 | 5 | 6 | 7 | 8 | 9

/** No options at all. */
type NoOptions = Record<never, never>

/** Work that is done once per key, however often it is asked for. */
export interface Once<Tx> {
  /**
   * Runs the body in a transaction of its own, unless that was done before under this key: then its
   * stored result is returned. A duplicate that comes meanwhile waits for it, as long as `wait` says. If the
   * body throws, nothing stays, and the next call runs it again.
   *
   * @example
   * const { result } = await hf.once(`stripe:${event.id}`, async (tx) => {
   *   await tx.query('UPDATE orders SET paid = true WHERE id = $1', [event.order])
   *   return { accepted: true }
   * })
   * @throws ONCE_TIMEOUT, ONCE_KEY_INVALID, ONCE_RESULT_INVALID, OPTION_INVALID, SCHEMA_MISSING, and those of
   * `tx.run`
   */
  <T, O extends OnceOptions & RunOptions = NoOptions>(
    key: string,
    body: (tx: Tx) => Promise<T> | T,
    options?: O,
  ): Promise<OnceAnswer<JsonOf<T>, O>>
  /**
   * The same in the caller's transaction: work and memory of it commit together, or neither does. If the
   * body throws, its writes are undone and the transaction can go on.
   *
   * @throws ONCE_TIMEOUT, ONCE_OUTSIDE_TRANSACTION, ONCE_KEY_INVALID, ONCE_RESULT_INVALID, OPTION_INVALID,
   * SCHEMA_MISSING
   */
  <T, O extends OnceOptions = NoOptions>(
    tx: Tx,
    key: string,
    body: (tx: Tx) => Promise<T> | T,
    options?: O,
  ): Promise<OnceAnswer<JsonOf<T>, O>>
  /**
   * Forgets keys whose time is up, at most `limit`, and says how many. Run it every so often, for instance
   * by a schedule.
   *
   * @throws OPTION_INVALID, SCHEMA_MISSING, TX_NESTED
   */
  forget(options?: { readonly limit?: number }): Promise<number>
}

const lockNotAvailable = '55P03'

type Body<Tx> = (tx: Tx) => unknown
type AnyAnswer = OnceDone<unknown> | OnceRefused<'in-progress' | 'mismatch'>

/** Work that is done once, over a driver. */
export function createOnce<Tx>(driver: Driver<Tx>, given: OnceRoomOptions = {}): Once<Tx> {
  assertDriver(driver, 'createOnce')
  const options = optionsGiven(given, onceRoomOptions)
  const { schema = 'holdfast', wait: usual, tx: defaults, ...resolving } = options
  const forMs = resolveMs(resolving)
  const memory = lockMemoryOf(driver)
  const defaultWait = defaultTerms(usual)
  /** Asks for the key, and waits for who has it. */
  const begin = async (
    transaction: Transaction<Tx>,
    { names }: Call,
    wait: WaitTerms,
    ask: (call: ReturnType<typeof beginOnce>) => Promise<string | null>,
  ): Promise<string | null> => {
    const { budgetMs, beside = driver.alone } = transaction
    const began = performance.now()
    try {
      return await ask(
        beginOnce(schema, names, wait.how === 'wait' ? { ...wait, budgetMs } : undefined),
      )
    } catch (error) {
      if (sqlStateOf(error) !== lockNotAvailable) throw error
      const waitedMs = performance.now() - began
      const lock = { kind: 'bigint' as const, id: onceLock(names) }
      const { blockers, endedBy } = await lookAtHolders(
        beside,
        [{ key: { lock }, mode: 'exclusive' }],
        { ...wait, budgetMs, waitedMs },
      )
      throw holdfastError('ONCE_TIMEOUT', {
        cause: error,
        details: endedBy === undefined ? {} : { endedBy },
        blockers,
      })
    }
  }
  const alone = async (key: string, body: Body<Tx>, options: OnceOptions & RunOptions) => {
    const call = callOf(key, options, defaultWait)
    memory.note(onceKey(call.names))
    let { wait } = call
    let retry: Pick<RunOptions, 'retry'> = {}
    // Of this attempt: whether the key has told about those before it, and whether COMMIT was sent.
    let [told, ended] = [false, false]
    const attempt = (): Promise<AnyAnswer> => {
      ;[told, ended] = [false, false]
      return runTransaction(
        driver,
        async (transaction, { remainingMs }, startedMs) => {
          ended = false
          const leftMs = (wait.limitMs ?? Infinity) - (performance.now() - startedMs)
          const limited = atMost(wait, Math.min(leftMs, remainingMs() ?? Infinity))
          const begun = await begin(transaction, call, limited, (asked) =>
            inside(transaction, asked),
          )
          told = true
          const answer = knownAnswer(begun) ?? (await work(transaction, body, call))
          ended = true
          return answer
        },
        {
          isolation: 'read committed',
          scopes: [call.names.scope],
          ...withTxDefaults(defaults, options),
          ...retry,
        },
        (run) => run({ withinMs: wait.limitMs ?? defaultWait.limitMs }),
        'once',
      )
    }
    if (options.retry === false) return await attempt()
    // A lost COMMIT is asked for by its key. Whoever is at it then may be our own first time.
    return await untilTold(attempt, {
      forMs,
      isSure: () => told && !ended,
      onDoubt() {
        wait = { how: 'wait', limitMs: forMs, yields: false }
        retry = { retry: { ...options.retry, budget: forMs } }
      },
    })
  }
  const joined = async (tx: Tx, key: string, body: Body<Tx>, options: OnceOptions) => {
    const call = callOf(key, options, defaultWait)
    memory.note(onceKey(call.names))
    const terms = {
      wait: call.wait,
      late: () => holdfastError('ONCE_TIMEOUT', { details: { endedBy: 'wait' } }),
      outside: () => holdfastError('ONCE_OUTSIDE_TRANSACTION'),
    }
    // Of two savepoints at once, the end of one would be the end of the other.
    return await inTurn(driver, tx, terms, async (transaction, wait) => {
      const begun = await begin(transaction, call, wait, (asked) =>
        callFunction(driver, tx, asked, 'ONCE_OUTSIDE_TRANSACTION'),
      )
      const known = knownAnswer(begun)
      if (known !== undefined) return known
      return await transaction.nested(async (inner) => await work(inner, body, call))
    })
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
    // Who did not ask for it in the call is not prepared for an answer without a result.
    if (!answer.ok && answer.reason === 'in-progress' && waitOf(args) === undefined)
      throw await inProgress(args)
    return answer
  }
  const inProgress = async (args: readonly unknown[]): Promise<Error> => {
    const at = isAlone(args) ? 0 : 1
    const { names } = callOf(args[at] as string, (args[at + 2] ?? {}) as OnceOptions, defaultWait)
    const lock = { kind: 'bigint' as const, id: onceLock(names) }
    const blockers = await holdersOf(driver.alone, [{ key: { lock }, mode: 'exclusive' }])
    return holdfastError('ONCE_TIMEOUT', { details: { endedBy: 'wait' }, blockers: blockers ?? [] })
  }
  const run = async (args: readonly unknown[]): Promise<AnyAnswer> => {
    if (isAlone(args)) {
      const [key, body, options] = args as [string, Body<Tx>, (OnceOptions & RunOptions)?]
      assertFunction(body)
      return await alone(key, body, optionsGiven(options, onceAloneOptions))
    }
    const [tx, key, body, options] = args as [Tx, string, Body<Tx>, OnceOptions?]
    assertFunction(body)
    return await joined(tx, key, body, optionsGiven(options, onceOptions))
  }
  const forget: Once<Tx>['forget'] = async (given) => {
    const { limit = 1_000 } = optionsGiven(given, forgetOptions)
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

/** No client has a handle that is a text; one that is a function exists. */
function isAlone(args: readonly unknown[]): boolean {
  return typeof args[0] === 'string' || typeof args[1] === 'function'
}

/** How the call itself said that it waits. */
function waitOf(args: readonly unknown[]): unknown {
  const at = isAlone(args) ? 2 : 3
  return (args[at] as OnceOptions | undefined)?.wait
}

interface Call {
  readonly names: OnceNames
  readonly wait: WaitTerms
  readonly keepMs: number
}

function callOf(
  key: string,
  { scope = key, keep = '30 days', payload, wait }: OnceOptions,
  usual: WaitTerms,
): Call {
  return {
    names: {
      key: keyText(key, 'key'),
      scope: keyText(scope, 'scope'),
      fingerprint: payload === undefined ? undefined : fingerprintOf(payload),
    },
    wait: termsOf(wait, usual),
    keepMs: durationMs(keep, 'keep'),
  }
}

function termsOf(wait: OnceOptions['wait'], usual: WaitTerms): WaitTerms {
  if (wait === true) return usual.how === 'nowait' ? defaultTerms(undefined) : usual
  return waitTerms(wait === false ? 'nowait' : wait, usual)
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
