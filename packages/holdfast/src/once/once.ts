import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { lockMemoryOf } from '../core/locks/lock-memory.ts'
import { atMost, defaultTerms, type Wait } from '../core/options/wait.ts'
import { isTraced, traced } from '../core/events/tracing.ts'
import { resolveMs, type ResolveOptions, resolveOptions, untilTold } from '../tx/ask-again.ts'
import { runTransaction } from '../tx/run.ts'
import { inTurn } from '../tx/in-turn.ts'
import { type Call, callOf, onceAloneOptions, type OnceOptions, onceOptions } from './call.ts'
import type { OnceEngine, OnceState } from './engine.ts'
import type { JsonOf } from './json-of.ts'
import { assertNotInside, insideOf } from './inside.ts'
import { tellOnce } from './once-events.ts'
import { jsonOf, valueOf } from './stored-result.ts'
import { rolledBack } from '../core/errors/commit-failure.ts'
import { awaited } from '../tx/awaited.ts'
import { assertFunction } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'
import { type RunOptions, type TxOptions, txOptions, withTxDefaults } from '../tx/run-options.ts'

/** Settings of the room. */
export interface OnceRoomOptions extends ResolveOptions {
  /** How long duplicates wait that do not say so themselves. @defaultValue '2 s' */
  readonly wait?: Wait
  /** Defaults of the transactions that it opens. */
  readonly tx?: TxOptions
  /** Where its table is. @defaultValue 'holdfast' */
  readonly schema?: string
}

export const onceRoomOptions: KnownOptions<OnceRoomOptions> = {
  ...resolveOptions,
  wait: 'checked',
  tx: txOptions,
  schema: 'text',
}

const forgetOptions: KnownOptions<{ readonly limit?: number }> = {
  limit: 'checked',
}

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

type Body<Tx> = (tx: Tx) => unknown
type AnyAnswer = OnceDone<unknown> | OnceRefused<'in-progress' | 'mismatch'>

/** Work that is done once over a driver, as its engine remembers it. */
export function onceOver<Tx>(
  engine: OnceEngine,
  driver: Driver<Tx>,
  given: OnceRoomOptions = {},
): Once<Tx> {
  assertDriver(driver, 'createOnce', engine.of)
  const options = optionsGiven(given, onceRoomOptions)
  const { schema = 'holdfast', wait: usual, tx: defaults, ...resolving } = options
  const forMs = resolveMs(resolving)
  const memory = lockMemoryOf(driver)
  const keys = engine.keys(driver, schema)
  const defaultWait = defaultTerms(usual)
  /** What the lock is called under which the work is done. */
  const note = ({ names }: Call): void => {
    const { key, scope } = names
    const namespace = 'holdfast-once'
    const name = scope === key ? `${namespace}:${key}` : `${namespace}:${scope}:${key}`
    memory.note({ name, namespace, lock: keys.lock(names) })
  }
  const alone = async (key: string, body: Body<Tx>, options: OnceOptions & RunOptions) => {
    const call = callOf(key, options, defaultWait)
    note(call)
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
          const begun = await keys.begin(transaction, call.names, limited, 'ours')
          told = true
          const answer = knownAnswer(begun) ?? (await work(transaction, body, call, rolledBack))
          ended = true
          return answer
        },
        {
          isolation: 'read committed',
          scopes: [call.names.scope],
          ...withTxDefaults(defaults, options),
          ...retry,
        },
        (run) => run({ withinMs: wait.limitMs ?? defaultWait.limitMs, bodyWaits: true }),
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
    assertNotInside(driver, call.names)
    note(call)
    const terms = {
      wait: call.wait,
      late: () => holdfastError('ONCE_TIMEOUT', { details: { endedBy: 'wait' } }),
      outside: () => holdfastError('ONCE_OUTSIDE_TRANSACTION'),
    }
    // Of two savepoints at once, the end of one would be the end of the other.
    return await inTurn(driver, tx, terms, async (transaction, wait) => {
      const known = knownAnswer(await keys.begin(transaction, call.names, wait, 'callers'))
      if (known !== undefined) return known
      return await transaction.nested(async (inner) => await work(inner, body, call))
    })
  }
  const work = async (
    transaction: Transaction<Tx>,
    body: Body<Tx>,
    { names, keepMs }: Call,
    failed = (error: unknown): unknown => error,
  ): Promise<AnyAnswer> => {
    const made = await insideOf(driver, names, () => body(transaction.native))
    const json = jsonOf(awaited(made))
    try {
      await keys.store(transaction, names, json, keepMs)
    } catch (error) {
      throw failed(error)
    }
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
    const blockers = await keys.holders(names)
    return holdfastError('ONCE_TIMEOUT', { details: { endedBy: 'wait' }, blockers })
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
    return await keys.forget(limit)
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

/** Nothing if the body has to run. */
function knownAnswer(state: OnceState): AnyAnswer | undefined {
  if (state === 'new') return undefined
  if (state === 'busy') return { ok: false, reason: 'in-progress' }
  if (state === 'mismatch') return { ok: false, reason: state }
  return { ok: true, result: valueOf(state.done), replayed: true }
}
