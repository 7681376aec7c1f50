import type { Driver, Executor } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import type { LockKey } from '../core/lock-key.ts'
import { lockMemoryOf } from '../core/lock-memory.ts'
import { isTraced, traced } from '../core/tracing.ts'
import type { LockMode, WantedLock } from '../engines/postgres/locks.ts'
import { type Attempt, type RunOptions, runTransaction } from '../tx/run.ts'
import {
  type AcquireOptions,
  Acquisition,
  isHeld,
  type LockInput,
  type LockSetup,
  wantedLocks,
} from './acquire.ts'
import { type CallSite, HoldWatch, type HoldWatchOptions } from './hold-watch.ts'
import { selfTest } from './self-test.ts'

export { inScope, type KeyPart, type LockKey, legacyKey, lockKey } from '../core/lock-key.ts'
export { type LockNamespace, lockNamespace, lockNamespaces } from '../core/lock-namespace.ts'
export type { WantedLock } from '../engines/postgres/locks.ts'
export type { AcquireOptions, LockInput } from './acquire.ts'
export type { HeldLongEvent } from '../core/event-map.ts'

/** Settings of the room. */
export interface LockOptions {
  /** Longest wait unless a call says otherwise. @defaultValue 2_000 */
  readonly waitMs?: number
  /** Show lock names in pg_stat_activity while held. @defaultValue true */
  readonly annotate?: boolean
  /**
   * Throw LOCK_ORDER where locks are taken in an order that can deadlock; otherwise only the event
   * is published. @defaultValue true when NODE_ENV is `development` or `test`
   */
  readonly strict?: boolean
  /** When a held lock is reported; `false` turns the watch off. @defaultValue 100 and 1_000 ms */
  readonly watch?: Partial<HoldWatchOptions> | false
}

/** Options of `guard`: those of the transaction and those of the wait. */
export type GuardOptions = RunOptions & AcquireOptions

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
   * Throws unless this transaction holds the key (exclusively, unless `shared(key)` is asked for).
   * For functions that rely on a caller having locked.
   *
   * @throws LOCK_NOT_HELD
   */
  assertHeld(tx: Tx, key: LockInput): Promise<void>
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

/** Named locks over a driver. */
export function createLocks<Tx>(driver: Driver<Tx>, options: LockOptions = {}): Locks<Tx> {
  const setup: LockSetup = {
    waitMs: options.waitMs ?? 2_000,
    annotate: options.annotate ?? true,
    strict: options.strict ?? ['development', 'test'].includes(process.env['NODE_ENV'] ?? ''),
    watch: options.watch === false ? undefined : watchPerServer(driver, options.watch),
    memory: lockMemoryOf(driver),
  }
  const acquisitionOf = (keys: LockInput | readonly LockInput[]): Acquisition<Tx> =>
    new Acquisition(driver, setup, wantedLocks(keys))
  const locks: Locks<Tx> = {
    async acquire(tx, keys, acquireOptions = {}) {
      const site = callSite(locks.acquire)
      const transaction = driver.join(tx)
      const acquisition = acquisitionOf(keys)
      const answer = await acquisition.wait(transaction, acquireOptions)
      acquisition.granted(answer, site, transaction, transaction.beside)
    },
    async tryAcquire(tx, keys, acquireOptions = {}) {
      const site = callSite(locks.tryAcquire)
      const transaction = driver.join(tx)
      const acquisition = acquisitionOf(keys)
      const answer = await acquisition.attempt(transaction, acquireOptions)
      if (answer.granted.length > 0) {
        acquisition.granted(answer, site, transaction, transaction.beside)
      }
      return answer.complete
    },
    async assertHeld(tx, key) {
      const [wanted] = wantedLocks(key)
      if (wanted === undefined) return
      if (!(await isHeld(driver.join(tx), wanted.key, wanted.mode))) {
        throw holdfastError('LOCK_NOT_HELD', { details: { subject: wanted.key.name } })
      }
    },
    async guard(keys, body, guardOptions = {}) {
      const site = callSite(locks.guard)
      const wanted = wantedLocks(keys)
      if (!isTraced()) return await guardBy(wanted, body, guardOptions, site)
      const run = (): ReturnType<typeof body> => guardBy(wanted, body, guardOptions, site)
      return await traced('guard', () => ({ locks: wanted }), run)
    },
    selfTest: () => selfTest(driver),
  }
  const guardBy = async <T>(
    wanted: readonly WantedLock[],
    body: (tx: Tx, attempt: Attempt) => Promise<T>,
    guardOptions: GuardOptions,
    site: CallSite,
  ): Promise<T> => {
    const acquisition = new Acquisition(driver, setup, wanted)
    // The server of the transaction has to be the one where everybody else takes these locks.
    const scopes = [...wanted.map(({ key }) => key.scope), ...(guardOptions.scopes ?? [])]
    let done: (() => void) | undefined
    try {
      return await runTransaction(
        driver,
        async (transaction, attempt, opened) => {
          const limits = withinDeadline(guardOptions, setup.waitMs, attempt.remainingMs())
          const answer = await acquisition.wait(transaction, limits, opened)
          done = acquisition.granted(answer, site, undefined, transaction.beside)
          try {
            return await body(transaction.native, attempt)
          } catch (error) {
            // Another attempt may follow after a pause in which nothing is held.
            done()
            throw error
          }
        },
        { ...guardOptions, scopes },
        acquisition.opening(guardOptions),
        'guard',
      )
    } finally {
      done?.()
    }
  }
  return locks
}

/** Backends are known by their process id, which is unique on one server only. */
function watchPerServer<Tx>(
  driver: Driver<Tx>,
  { heldLongMs = 100, heldTooLongMs = 1_000 }: Partial<HoldWatchOptions> = {},
): LockSetup['watch'] {
  const watches = new Map<Executor, HoldWatch>()
  return (beside = driver.alone) => {
    const known = watches.get(beside)
    if (known !== undefined) return known
    const made = new HoldWatch(beside, { heldLongMs, heldTooLongMs })
    watches.set(beside, made)
    return made
  }
}

/** A wait must not outlive the deadline. */
function withinDeadline(
  options: GuardOptions,
  defaultMs: number,
  remainingMs: number | undefined,
): AcquireOptions {
  const { waitMs = defaultMs } = options
  if (remainingMs === undefined || waitMs === 0) return options
  return { ...options, waitMs: waitMs === 'inherit' ? remainingMs : Math.min(waitMs, remainingMs) }
}

/** Each frame costs on every call; the first or, behind `close`, the second is the caller's. */
const siteFrames = 2

/** Captures where a lock is taken; V8 formats the stack only if someone reads it. */
function callSite(method: (...args: never) => unknown): CallSite {
  const { stackTraceLimit } = Error
  Error.stackTraceLimit = siteFrames
  const site: CallSite = {}
  Error.captureStackTrace(site, method)
  Error.stackTraceLimit = stackTraceLimit
  return site
}
