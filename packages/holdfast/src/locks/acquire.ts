import type { Driver, Executor, Row, Statement, Transaction } from '../core/driver.ts'
import { type Blocker, holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import type { LockKey } from '../core/lock-key.ts'
import type { LockMemory } from '../core/lock-memory.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { traced } from '../core/tracing.ts'
import { within } from '../core/within.ts'
import { blockersFrom } from '../engines/postgres/activity.ts'
import {
  heldStatement,
  lockHolders,
  locksAreReal,
  markerStatement,
} from '../engines/postgres/lock-holders.ts'
import {
  type LockAnswer,
  type LockMode,
  lockAnswer,
  type LockRequest,
  lockStatement,
  type WantedLock,
} from '../engines/postgres/locks.ts'
import type { CallSite, HoldWatch } from './hold-watch.ts'
import { LockEvents } from './lock-events.ts'
import { orderFault } from './lock-order.ts'

/** A key alone is wanted exclusively; `shared(key)` says otherwise. */
export type LockInput = LockKey | WantedLock

/** What the room was created with, shared by all its calls. */
export interface LockSetup {
  readonly waitMs: number
  /** Show lock names in pg_stat_activity. */
  readonly annotate: boolean
  /** Throw on an order that can deadlock, instead of only publishing it. */
  readonly strict: boolean
  /** That of a server: of the driver's, or of the one beside a transaction. */
  readonly watch: ((beside: Executor | undefined) => HoldWatch) | undefined
  /** Where names are kept for whoever looks at locks. */
  readonly memory: LockMemory
}

/** How one acquisition waits. */
export interface AcquireOptions {
  /**
   * Longest wait for all keys together, in milliseconds. 0 does not wait; `inherit` leaves the
   * transaction's own lock_timeout in force.
   * @defaultValue 2_000
   */
  readonly waitMs?: number | 'inherit'
  /**
   * Keep the transaction usable after a timeout, by a savepoint (two more round trips).
   * @defaultValue false
   */
  readonly keepTransaction?: boolean
  /**
   * Allow REPEATABLE READ and SERIALIZABLE, where what is read after the lock may be older than the
   * lock. At SERIALIZABLE PostgreSQL catches that, but only if the other writer is SERIALIZABLE too.
   * @defaultValue false
   */
  readonly allowStaleSnapshot?: boolean
}

const lockNotAvailable = '55P03'
/** How long a timeout error may be held back to name the blocker. */
const lookupLimitMs = 100

/** Servers whose advisory locks were seen in the lock table; asked once per driver. */
const provenDrivers = new WeakSet<object>()

/** One acquisition in a transaction, ours or the caller's. */
export class Acquisition<Tx> {
  readonly #driver: Driver<Tx>
  readonly #setup: LockSetup
  readonly #wanted: readonly WantedLock[]
  readonly #events: LockEvents

  constructor(driver: Driver<Tx>, setup: LockSetup, wanted: readonly WantedLock[]) {
    this.#driver = driver
    this.#setup = setup
    this.#wanted = wanted
    for (const { key } of wanted) setup.memory.note(key)
    this.#events = new LockEvents(wanted, setup.memory)
  }

  /** The statement that `wait` would send first, for a driver that can send it with BEGIN. */
  opening(options: AcquireOptions): Statement | undefined {
    if (options.keepTransaction === true) return undefined
    return lockStatement({ ...this.#request(options, undefined), first: true })
  }

  /** Waits for the locks, at most as long as the options allow. */
  wait(
    transaction: Transaction<Tx>,
    options: AcquireOptions,
    opened?: Promise<readonly Row[]>,
  ): Promise<LockAnswer> {
    return traced(
      'lock',
      () => ({ locks: this.#wanted }),
      () => this.#wait(transaction, options, opened),
    )
  }

  async #wait(
    transaction: Transaction<Tx>,
    options: AcquireOptions,
    opened: Promise<readonly Row[]> | undefined,
  ): Promise<LockAnswer> {
    const { waitMs = this.#setup.waitMs, keepTransaction: keep = false } = options
    const attempt = waitMs === 0
    let answer: LockAnswer
    this.#events.requested()
    try {
      if (opened !== undefined) {
        // What was sent together with BEGIN is in the transaction that BEGIN opened.
        answer = this.#judged(await opened, attempt)
        await this.#assertReal(transaction, answer)
      } else {
        const request = this.#request(options, transaction.budgetMs)
        answer = keep
          ? await transaction.nested((inner) => this.#take(inner, request))
          : await this.#take(transaction, request)
      }
    } catch (error) {
      if (sqlStateOf(error) === lockNotAvailable) {
        throw await this.#timeout(
          error,
          keep ? transaction : (transaction.beside ?? this.#driver.alone),
        )
      }
      this.#events.failed(error)
      throw error
    }
    if (!answer.complete) {
      this.#events.busy()
      throw this.#contention('LOCK_BUSY', undefined, await this.#blockers(transaction))
    }
    return answer
  }

  /** Takes what is free, without waiting. */
  attempt(transaction: Transaction<Tx>, options: AcquireOptions): Promise<LockAnswer> {
    return traced(
      'lock',
      () => ({ locks: this.#wanted }),
      async (span) => {
        this.#events.requested()
        try {
          const request = this.#request({ ...options, waitMs: 0 }, undefined)
          const answer = await this.#take(transaction, request)
          if (!answer.complete) this.#events.busy()
          span?.set({ 'holdfast.lock.granted': answer.complete })
          return answer
        } catch (error) {
          this.#events.failed(error)
          throw error
        }
      },
    )
  }

  #request(options: AcquireOptions, budgetMs: number | undefined): LockRequest {
    const { waitMs = this.#setup.waitMs } = options
    if (waitMs !== 'inherit' && !(Number.isInteger(waitMs) && waitMs >= 0 && waitMs < 2 ** 31)) {
      throw holdfastError('OPTION_INVALID', { details: { option: 'waitMs', subject: 'waitMs' } })
    }
    return {
      wanted: this.#wanted,
      attempt: waitMs === 0,
      limitMs: waitMs === 'inherit' || waitMs === 0 ? undefined : waitMs,
      budgetMs,
      label: this.#setup.annotate ? this.#subject() : undefined,
      allowStaleSnapshot: options.allowStaleSnapshot === true,
      first: false,
    }
  }

  async #take(transaction: Transaction<Tx>, request: LockRequest): Promise<LockAnswer> {
    const state = transaction.state()
    if (state === 'none') throw this.#refusal('LOCK_OUTSIDE_TRANSACTION')
    const taking = transaction.query(lockStatement(request))
    const unsure = state === 'unknown'
    // A client that pipelines spends no round trip on a statement sent right behind.
    const together = unsure && this.#driver.capabilities.pipelines
    const marked = together ? this.#hasMarker(transaction) : undefined
    marked?.catch(() => undefined)
    const answer = this.#judged(await taking, request.attempt)
    // In autocommit the marker, like the lock, was gone as soon as the statement ended.
    if (unsure && answer.granted.length > 0 && !(await (marked ?? this.#hasMarker(transaction)))) {
      throw this.#refusal('LOCK_OUTSIDE_TRANSACTION')
    }
    await this.#assertReal(transaction, answer)
    return answer
  }

  /** Reads the answer of a lock statement and throws where the lock would be worthless. */
  #judged([row]: readonly Row[], attempt: boolean): LockAnswer {
    if (row === undefined) throw this.#refusal('DRIVER_HANDLE_INVALID')
    const answer = lockAnswer(row)
    if (answer.refused === 'standby') throw this.#refusal('LOCK_ON_STANDBY')
    if (answer.refused === 'stale') throw this.#refusal('LOCK_STALE_SNAPSHOT')
    // Trying does not wait, so it cannot close a cycle.
    if (attempt) return answer
    // A lock function that returns without a grant and without an error is no lock function.
    if (!answer.complete) throw this.#refusal('ENGINE_LOCKS_ARE_STUBS')
    this.#watchOrder(answer)
    return answer
  }

  /** The marker is set by every grant, for as long as the transaction lasts. */
  async #hasMarker(transaction: Transaction<Tx>): Promise<boolean> {
    const [row] = await transaction.query(markerStatement)
    return row?.['held'] === true
  }

  /** Once per driver: an engine that only pretends has no such row. */
  async #assertReal(transaction: Transaction<Tx>, { granted }: LockAnswer): Promise<void> {
    if (granted.length === 0 || provenDrivers.has(this.#driver)) return
    const [row] = await transaction.query(locksAreReal)
    if (row?.['real'] !== true) throw this.#refusal('ENGINE_LOCKS_ARE_STUBS')
    provenDrivers.add(this.#driver)
  }

  #watchOrder(answer: LockAnswer): void {
    if (answer.before.length === 0 && !answer.rowsBefore) return
    const fault = orderFault(answer.before, answer.rowsBefore, answer.granted)
    if (fault === undefined) return
    const { names } = this.#events
    const details = { subject: this.#subject(), fault, names, pid: answer.pid }
    publish(channels.lockOrder, { ...details, locks: this.#wanted })
    if (this.#setup.strict) throw holdfastError('LOCK_ORDER', { details })
  }

  /**
   * Starts the held-too-long watch and tells who listens. `caller` is the caller's transaction,
   * whose end we do not see; without it the returned function is called at the end.
   */
  granted(
    answer: LockAnswer,
    site: CallSite,
    caller: Transaction<Tx> | undefined,
    beside: Executor | undefined,
  ): () => void {
    const { pid, granted, before, complete } = answer
    const [token] = granted
    if (complete) this.#events.acquired(answer)
    const watch = this.#setup.watch?.(beside)
    if (watch === undefined || token === undefined) return () => this.#events.released(pid)
    const state = caller === undefined ? undefined : () => caller.state()
    const hold = watch.start({ pid, locks: this.#wanted, token, site, state }, before.length > 0)
    return () => {
      watch.end(hold)
      this.#events.released(pid)
    }
  }

  #subject(): string {
    const [first] = this.#wanted
    const more = this.#wanted.length - 1
    return `${first?.key.name ?? ''}${more > 0 ? ` +${more}` : ''}`
  }

  #refusal(code: Parameters<typeof holdfastError>[0]): Error {
    return holdfastError(code, { details: { subject: this.#subject(), client: this.#driver.name } })
  }

  /** A usable transaction can be asked itself; after an abort another connection has to. */
  async #timeout(cause: unknown, executor: Executor): Promise<Error> {
    const { waitedMs } = this.#events
    const blockers = await this.#blockers(executor)
    this.#events.timeout(waitedMs, blockers)
    return this.#contention('LOCK_TIMEOUT', cause, blockers)
  }

  async #blockers(executor: Executor): Promise<readonly Blocker[]> {
    const lookup = executor.query(lockHolders(this.#wanted)).then(blockersFrom)
    return (await within(lookup, lookupLimitMs)) ?? []
  }

  #contention(
    code: 'LOCK_TIMEOUT' | 'LOCK_BUSY',
    cause: unknown,
    blockers: readonly Blocker[],
  ): Error {
    const details = { subject: this.#subject(), names: this.#events.names }
    return holdfastError(code, { cause, details, blockers })
  }
}

/** Whether the transaction holds the key in the mode or a stronger one. */
export async function isHeld<Tx>(
  transaction: Transaction<Tx>,
  key: LockKey,
  mode: LockMode,
): Promise<boolean> {
  const [row] = await transaction.query(heldStatement(key, mode))
  return row?.['held'] === true
}

export function wantedLocks(keys: LockInput | readonly LockInput[]): readonly WantedLock[] {
  const list = Array.isArray(keys) ? (keys as readonly LockInput[]) : [keys as LockInput]
  if (list.length === 0) {
    throw holdfastError('LOCK_KEY_INVALID', { details: { subject: 'no key was given' } })
  }
  return list.map((input) => ('lock' in input ? { key: input, mode: 'exclusive' } : input))
}
