import { type CallSite, callSite, nowhere } from '../core/locks/call-site.ts'
import type { Driver, Executor } from '../core/driver.ts'
import { durationMs } from '../core/options/duration.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { keyQueuesOf } from '../core/locks/key-queues.ts'
import { lockMemoryOf } from '../core/locks/lock-memory.ts'
import { orderWatchOf } from '../core/locks/order-watch.ts'
import { isTraced, traced } from '../core/events/tracing.ts'
import { atMost, defaultTerms, nowait, type Wait } from '../core/options/wait.ts'
import type { LockKey, LockMode, WantedLock } from '../core/locks/wanted-lock.ts'
import { inTurn } from '../tx/in-turn.ts'
import { type Attempt, runTransaction } from '../tx/run.ts'
import {
  type AcquireOptions,
  acquireOptions,
  acquireTerms,
  tryAcquireOptions,
} from './acquire-options.ts'
import { Acquisition, type LockSetup } from './acquire.ts'
import type { LockEngine } from './engine.ts'
import { HoldWatch, type HoldWatchOptions, Places, watchOptions } from './hold-watch.ts'
import { queuedAt, QueuedGuard } from './queued-guard.ts'
import { selfTest } from './self-test.ts'
import { soleSessionsOf } from './sole-sessions.ts'
import { type LockInput, wantedLocks } from './wanted-locks.ts'
import { assertFunction } from '../core/options/given.ts'
import { assertOneOf, type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'
import {
  type RunOptions,
  runOptions,
  type TxOptions,
  txOptions,
  withTxDefaults,
} from '../tx/run-options.ts'
import type { Blocker } from '../core/events/event-map.ts'

/** Settings of the room. */
export interface LockOptions {
  /** How calls wait that do not say so themselves. @defaultValue '2 s' */
  readonly wait?: Wait
  /** @deprecated Say `wait`. */
  readonly waitMs?: number
  /** Defaults of the transactions of `guard`. */
  readonly tx?: TxOptions
  /** Show lock names in pg_stat_activity while held. @defaultValue true */
  readonly annotate?: boolean
  /**
   * Throw LOCK_ORDER where locks are taken in an order that can deadlock with one that was seen before;
   * otherwise only the event is published. Counts for everything over the same driver, rows too. @defaultValue true when NODE_ENV is `development` or `test`
   */
  readonly strict?: boolean
  /**
   * When a held lock is reported; `false` turns the watch off. A lock in a transaction of yours is looked for
   * on the server, and only if somebody listens to `holdfast:lock.held-long`, or NODE_ENV is `development` or
   * `test`. @defaultValue 100 and 1_000 ms
   */
  readonly watch?: Partial<HoldWatchOptions> | false
  /**
   * Let guards of one key wait in this process, first come, first served, while another guard of the process
   * has the key or asks for it, so that only one of them takes a connection. @defaultValue true
   */
  readonly queue?: boolean
}

/** Options of `guard`: those of the transaction and those of the wait. */
export type GuardOptions = RunOptions &
  AcquireOptions & {
    /** `false` asks PostgreSQL at once, on a connection of its own. @defaultValue that of the locks, `true` */
    readonly queue?: boolean
  }

/** Options of `tryGuard`, which does not wait. */
export type TryGuardOptions = Omit<GuardOptions, 'wait' | 'waitMs' | 'keepTransaction'>

export const guardOptions: KnownOptions<GuardOptions> = {
  ...runOptions,
  ...acquireOptions,
  queue: 'boolean',
}

const tryGuardOptions: KnownOptions<TryGuardOptions> = {
  ...runOptions,
  ...tryAcquireOptions,
  queue: 'boolean',
}

export const lockOptions: KnownOptions<LockOptions> = {
  wait: 'checked',
  waitMs: 'checked',
  tx: txOptions,
  annotate: 'boolean',
  strict: 'boolean',
  watch: 'checked',
  queue: 'boolean',
}

/** What became of a `tryGuard`. */
export type TryGuarded<T> =
  | { readonly ok: true; readonly result: T }
  | {
      readonly ok: false
      /** Who holds a key. Empty if that could not be found out in time. */
      readonly blockers: readonly Blocker[]
    }

/** Named locks that live and die with a transaction. */
export interface Locks<Tx> {
  /**
   * Takes one or many locks in the caller's open transaction, in one round trip, sorted so that no
   * two callers can deadlock on them. They are held until that transaction ends.
   *
   * @example await prisma.$transaction(async (tx) => { await hf.locks.acquire(tx, lockKey('cart', id)); … })
   * @throws LOCK_TIMEOUT, LOCK_BUSY, LOCK_OUTSIDE_TRANSACTION, LOCK_STALE_SNAPSHOT, LOCK_ON_STANDBY,
   * LOCK_ORDER, ENGINE_LOCKS_ARE_STUBS
   */
  acquire(tx: Tx, keys: LockInput | readonly LockInput[], options?: AcquireOptions): Promise<void>
  /**
   * Takes the locks if all are free, without waiting. If one is not, the answer is `false`, and
   * those that were free stay held until the transaction ends.
   *
   * @example if (!(await hf.locks.tryAcquire(tx, lockKey('report', day)))) return 'already running'
   */
  tryAcquire(
    tx: Tx,
    keys: LockInput | readonly LockInput[],
    options?: Pick<AcquireOptions, 'allowStaleSnapshot'>,
  ): Promise<boolean>
  /**
   * Throws unless this transaction holds the key, or all of them (exclusively, unless `shared(key)` is
   * asked for). For functions that rely on a caller having locked.
   *
   * @throws LOCK_NOT_HELD
   */
  assertHeld(tx: Tx, keys: LockInput | readonly LockInput[]): Promise<void>
  /**
   * Opens a transaction, takes the locks, runs the body with the client's own handle, commits; runs
   * the whole again on a serialization failure or deadlock.
   *
   * @example await hf.guard(lockKey('image-upload', userId), async (tx) => { …check, then write… })
   * @throws those of `acquire` and of `tx.run`
   */
  guard<T>(
    keys: LockInput | readonly LockInput[],
    body: (tx: Tx, attempt: Attempt) => Promise<T>,
    options?: GuardOptions,
  ): Promise<T>
  /**
   * The same if the locks are free; if one is not, the body does not run, and the answer says who has it.
   *
   * @example
   * const made = await hf.tryGuard(lockKey('report', day), async (tx) => makeReport(tx, day))
   * if (!made.ok) return 'somebody else is at it'
   * @throws those of `guard`, but LOCK_BUSY and LOCK_TIMEOUT
   */
  tryGuard<T>(
    keys: LockInput | readonly LockInput[],
    body: (tx: Tx, attempt: Attempt) => Promise<T>,
    options?: TryGuardOptions,
  ): Promise<TryGuarded<T>>
  /**
   * Proves, on two connections, that this server enforces advisory locks. Run it at start-up.
   *
   * @throws ENGINE_LOCKS_ARE_STUBS, LOCK_ON_STANDBY, SELF_TEST_INCONCLUSIVE
   */
  selfTest(): Promise<void>
}

/** Asks for a key in shared mode: many may hold it, but nobody exclusively. */
export function shared(key: LockKey): WantedLock {
  return { key, mode: 'shared' satisfies LockMode }
}

/** Named locks over a driver, as its engine has them. */
export function locksOver<Tx>(
  engine: LockEngine,
  driver: Driver<Tx>,
  given: LockOptions = {},
): Locks<Tx> {
  assertDriver(driver, 'createLocks', engine.of)
  const options = optionsGiven(given, lockOptions)
  assertOneOf(options, 'wait', 'waitMs')
  const places = new Places(isDeveloping())
  const setup: LockSetup = {
    engine,
    wait: defaultTerms(options.wait === undefined ? options.waitMs : options.wait),
    annotate: options.annotate ?? true,
    order: orderWatchOf(driver),
    watch:
      options.watch === false
        ? undefined
        : watchPerServer(
            engine,
            driver,
            places,
            optionsGiven(options.watch, watchOptions, 'watch'),
          ),
    memory: lockMemoryOf(driver),
  }
  setup.order.strict = options.strict ?? isDeveloping()
  const queues = keyQueuesOf(driver)
  const acquisitionOf = (keys: LockInput | readonly LockInput[], site: CallSite): Acquisition<Tx> =>
    new Acquisition(driver, setup, wantedLocks(keys), site)
  /** A guard of one lock has no order: where it was called only the hold watch wants to know. */
  const siteOf = (
    wanted: readonly WantedLock[],
    method: Parameters<typeof callSite>[0],
  ): CallSite => (wanted.length > 1 || places.worthIt ? callSite(method) : nowhere)
  const locks: Locks<Tx> = {
    async acquire(tx, keys, given) {
      const site = callSite(locks.acquire)
      const acquisition = acquisitionOf(keys, site)
      const terms = acquireTerms(setup.wait, optionsGiven(given, acquireOptions))
      await inTurn(driver, tx, acquisition.turn(terms), async (transaction, wait) => {
        const answer = await acquisition.wait(transaction, { ...terms, wait })
        acquisition.granted(answer, transaction, transaction.beside)
      })
    },
    async tryAcquire(tx, keys, given) {
      const site = callSite(locks.tryAcquire)
      const acquisition = acquisitionOf(keys, site)
      const asked = optionsGiven(given, tryAcquireOptions)
      const terms = { ...acquireTerms(setup.wait, asked), wait: nowait }
      return await inTurn(driver, tx, acquisition.turn(terms), async (transaction) => {
        const answer = await acquisition.attempt(transaction, terms)
        if (answer.granted.length > 0) {
          acquisition.granted(answer, transaction, transaction.beside)
        }
        return answer.complete
      })
    },
    async assertHeld(tx, keys) {
      const transaction = driver.join(tx)
      for (const { key, mode } of wantedLocks(keys)) {
        if (await engine.isHeld(transaction, key, mode)) continue
        const { namespace: about, name: subject } = key
        throw holdfastError('LOCK_NOT_HELD', { about, details: { subject, names: [subject] } })
      }
    },
    async guard(keys, body, given) {
      const wanted = wantedLocks(keys)
      const asked = optionsGiven(given, guardOptions)
      assertFunction(body)
      const site = siteOf(wanted, locks.guard)
      if (!isTraced()) return await guardBy(wanted, body, asked, site)
      const run = (): ReturnType<typeof body> => guardBy(wanted, body, asked, site)
      return await traced('guard', () => ({ locks: wanted }), run)
    },
    async tryGuard(keys, body, given) {
      const wanted = wantedLocks(keys)
      const asked = optionsGiven(given, tryGuardOptions)
      assertFunction(body)
      const site = siteOf(wanted, locks.tryGuard)
      let ofBody: unknown
      const run = (): ReturnType<typeof body> =>
        guardBy(
          wanted,
          async (tx, attempt) => {
            try {
              return await body(tx, attempt)
            } catch (error) {
              ofBody = error
              throw error
            }
          },
          { ...asked, wait: 'nowait' },
          site,
        )
      try {
        const result = isTraced()
          ? await traced('guard', () => ({ locks: wanted }), run)
          : await run()
        return { ok: true, result }
      } catch (error) {
        // A body may meet a busy lock of its own.
        if (error === ofBody || !isHoldfastError(error, 'LOCK_BUSY')) throw error
        return { ok: false, blockers: error.blockers }
      }
    },
    selfTest: () => selfTest(engine, driver),
  }
  const guardBy = async <T>(
    wanted: readonly WantedLock[],
    body: (tx: Tx, attempt: Attempt) => Promise<T>,
    asked: GuardOptions,
    site: CallSite,
  ): Promise<T> => {
    const acquisition = new Acquisition(driver, setup, wanted, site)
    const terms = acquireTerms(setup.wait, asked)
    const filled = withTxDefaults(options.tx, asked)
    const { queue: isQueued = options.queue ?? true } = asked
    const at = isQueued ? queuedAt(driver, queues, wanted) : undefined
    const queued = new QueuedGuard(driver, acquisition, terms, setup.wait.limitMs, at)
    // The server of the transaction has to be the one where everybody else takes these locks.
    const scopes = [...wanted.map(({ key }) => key.scope), ...(filled.scopes ?? [])]
    let released: (() => void) | undefined
    let closed: (() => void) | undefined
    const run = (isolation: Pick<RunOptions, 'isolation'>): Promise<T> =>
      runTransaction(
        driver,
        async (transaction, attempt, startedMs, opened) => {
          const sessions = soleSessionsOf(driver, transaction.beside)
          const session = sessions.opened()
          closed = () => sessions.over(session)
          const left = opened === undefined ? queued.left(startedMs) : queued.asked
          // A wait must not outlive the deadline.
          const wait = atMost(left.wait, attempt.remainingMs())
          const within = wait === left.wait ? left : { ...left, wait }
          const askedAt = opened === undefined ? undefined : queued.askedAt
          const answer = await acquisition.wait(transaction, within, opened, askedAt)
          if (!(await sessions.isSole(engine, session, transaction, answer)))
            throw acquisition.sharedSession()
          queued.place?.granted(answer.pid, transaction.beside)
          released = acquisition.granted(answer, undefined, transaction.beside)
          try {
            return await body(transaction.native, attempt)
          } finally {
            queued.bodyEnded()
          }
        },
        { ...filled, ...isolation, scopes },
        (attempt, signal) => {
          const admitted = queued.admit(attempt, signal)
          const over = (): void => closed?.()
          // Another attempt may follow after a pause in which nothing is held.
          admitted.then(over, () => {
            over()
            released?.()
          })
          return admitted
        },
        'guard',
      )
    try {
      if (asked.isolation !== undefined) return await run({})
      if (staleByDefault.has(driver) || terms.allowStaleSnapshot) return await run(fresh)
      try {
        return await run({})
      } catch (error) {
        if (released !== undefined || !isHoldfastError(error, 'LOCK_STALE_SNAPSHOT')) throw error
        // Nothing was locked, and the body has not run.
        staleByDefault.add(driver)
        return await run(fresh)
      }
    } finally {
      released?.()
    }
  }
  return locks
}

function isDeveloping(): boolean {
  return ['development', 'test'].includes(process.env['NODE_ENV'] ?? '')
}

const fresh: Pick<RunOptions, 'isolation'> = { isolation: 'read committed' }

/**
 * Drivers whose server opens transactions at another level than READ COMMITTED unless told. To tell it every
 * time costs some clients a round trip.
 */
const staleByDefault = new WeakSet<object>()

/** Backends are known by their process id, which is unique on one server only. */
function watchPerServer<Tx>(
  engine: LockEngine,
  driver: Driver<Tx>,
  places: Places,
  { heldLongMs = 100, heldTooLongMs = 1_000 }: Partial<HoldWatchOptions> = {},
): LockSetup['watch'] {
  const limits = {
    heldLongMs: durationMs(heldLongMs, 'watch.heldLongMs'),
    heldTooLongMs: durationMs(heldTooLongMs, 'watch.heldTooLongMs'),
  }
  const watches = new Map<Executor, HoldWatch>()
  return (beside = driver.alone) => {
    const known = watches.get(beside)
    if (known !== undefined) return known
    const made = new HoldWatch(engine, beside, limits, isDeveloping(), places)
    watches.set(beside, made)
    return made
  }
}
