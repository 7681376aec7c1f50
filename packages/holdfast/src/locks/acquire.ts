import type { Driver, Executor, Row, Statement, Transaction } from '../core/driver.ts'
import type { CallSite } from '../core/call-site.ts'
import { type Blocker, holdfastError } from '../core/errors.ts'
import { type LockKey, subjectOf } from '../core/lock-key.ts'
import type { LockMemory } from '../core/lock-memory.ts'
import type { OrderWatch } from '../core/order-watch.ts'
import { sqlStateOf, wasCanceled } from '../core/sql-state.ts'
import { traced } from '../core/tracing.ts'
import { firstOf } from '../core/within.ts'
import { type EndedBy, nowait, type WaitTerms } from '../core/wait.ts'
import { locksAreReal, markerStatement } from '../engines/postgres/locks/lock-holders.ts'
import { seenLocks } from '../engines/postgres/locks/lock-order.ts'
import {
  type LockAnswer,
  type LockToken,
  lockAnswer,
  type LockRequest,
  lockStatement,
  type WantedLock,
} from '../engines/postgres/locks/locks.ts'
import { ownTimeouts } from '../engines/postgres/tx/wait-limit.ts'
import {
  type EndedWait,
  holdersOf,
  lookAtHolders,
} from '../engines/postgres/locks/look-at-holders.ts'
import type { TurnTerms } from '../tx/in-turn.ts'
import type { AcquireTerms } from './acquire-options.ts'
import type { HoldWatch } from './hold-watch.ts'
import { LockEvents } from './lock-events.ts'
import { isTrue } from '../core/is-true.ts'

/** What the room was created with, shared by all its calls. */
export interface LockSetup {
  /** For calls that do not say how they wait. */
  readonly wait: WaitTerms
  /** Show lock names in pg_stat_activity. */
  readonly annotate: boolean
  /** Learns the order in which locks are taken. */
  readonly order: OrderWatch
  /** That of a server: of the driver's, or of the one beside a transaction. */
  readonly watch: ((beside: Executor | undefined) => HoldWatch) | undefined
  /** Where names are kept for whoever looks at locks. */
  readonly memory: LockMemory
}

/** Why a lock would protect nothing here. */
type RefusalCode =
  | 'DRIVER_HANDLE_INVALID'
  | 'ENGINE_LOCKS_ARE_STUBS'
  | 'ENGINE_ONE_SESSION'
  | 'LOCK_ON_STANDBY'
  | 'LOCK_OUTSIDE_TRANSACTION'
  | 'LOCK_STALE_SNAPSHOT'
  | 'TX_SESSION_SHARED'

const lockNotAvailable = '55P03'
const queryCanceled = '57014'

/** Servers whose advisory locks were seen in the lock table; asked once per driver. */
const provenDrivers = new WeakSet<object>()

/** One acquisition in a transaction, ours or the caller's. */
export class Acquisition<Tx> {
  readonly #driver: Driver<Tx>
  readonly #setup: LockSetup
  readonly #wanted: readonly WantedLock[]
  readonly #site: CallSite
  readonly #events: LockEvents
  #ownTimeouts: Row | undefined
  /** In the caller's transaction, which may have settings that no other connection has. */
  #joined = false

  constructor(driver: Driver<Tx>, setup: LockSetup, wanted: readonly WantedLock[], site: CallSite) {
    this.#driver = driver
    this.#setup = setup
    this.#wanted = wanted
    this.#site = site
    for (const { key } of wanted) setup.memory.note(key)
    this.#events = new LockEvents(wanted, setup.memory)
  }

  /** The statement that `wait` would send first, for a driver that can send it with BEGIN. */
  opening(terms: AcquireTerms): Statement | undefined {
    if (terms.keepTransaction) return undefined
    return lockStatement({ ...this.#request(terms, undefined), first: true })
  }

  /** Of a call in the caller's transaction, where others may be made at once. */
  turn({ wait }: AcquireTerms): TurnTerms {
    this.#joined = true
    return {
      wait,
      late: () => this.#contention('LOCK_TIMEOUT', undefined, [], { endedBy: 'wait' }),
      outside: () => this.#refusal('LOCK_OUTSIDE_TRANSACTION'),
    }
  }

  /** Waits for the locks, at most as long as the options allow. */
  wait(
    transaction: Transaction<Tx>,
    terms: AcquireTerms,
    opened?: Promise<readonly Row[]>,
  ): Promise<LockAnswer> {
    return traced(
      'lock',
      () => ({ locks: this.#wanted }),
      () => this.#wait(transaction, terms, opened),
    )
  }

  async #wait(
    transaction: Transaction<Tx>,
    terms: AcquireTerms,
    opened: Promise<readonly Row[]> | undefined,
  ): Promise<LockAnswer> {
    const { wait, keepTransaction: keep } = terms
    const attempt = wait.how === 'nowait'
    const began = performance.now()
    let answer: LockAnswer
    this.#events.requested()
    try {
      if (opened !== undefined) {
        // What was sent together with BEGIN is in the transaction that BEGIN opened.
        answer = this.#judged(await opened, { attempt, brief: true })
        if (attempt || answer.complete) await this.#assertReal(transaction, answer)
        else answer = await this.#heeding(transaction, this.#whole(terms, transaction.budgetMs))
      } else {
        const request = this.#request(terms, transaction.budgetMs)
        answer = keep
          ? await transaction.nested((inner) => this.#take(inner, request))
          : await this.#take(transaction, request)
      }
    } catch (error) {
      const state = sqlStateOf(error)
      // One that was sent with BEGIN leaves its end to statement_timeout.
      const isLimit = state === queryCanceled && opened !== undefined && !wasCanceled(error)
      if (state === lockNotAvailable || isLimit) {
        const waitedMs = performance.now() - began
        const canceled = state === queryCanceled ? { message: String(error) } : undefined
        // Those of another connection would tell something that need not be so.
        const isUnknown = this.#joined && !keep && transaction.budgetMs === undefined
        const own = this.#ownTimeouts ?? (isUnknown ? {} : undefined)
        const ended = { ...wait, budgetMs: transaction.budgetMs, waitedMs, canceled, own }
        throw await this.#timeout(error, transaction, keep, ended)
      }
      this.#events.failed(error)
      throw error
    }
    if (!answer.complete) {
      this.#events.busy()
      const looked = { ...wait, budgetMs: undefined, waitedMs: 0 }
      const { blockers } = await lookAtHolders(transaction, this.#wanted, looked, true)
      throw this.#contention('LOCK_BUSY', undefined, blockers)
    }
    return answer
  }

  /** A wait that begins before there is a connection; `wait` does not tell it again. */
  requested(): void {
    this.#events.requested()
  }

  /** How long it has been waiting; 0 if nobody wants to know. */
  get waitedMs(): number {
    return this.#events.waitedMs
  }

  /** Tells the end of a wait that `wait` did not see. */
  failed(error: unknown): void {
    this.#events.failed(error)
  }

  /** Which of the locks were granted. What has a number that only the server knows is left out. */
  #among(granted: readonly LockToken[]): readonly WantedLock[] {
    return this.#wanted.filter(({ key: { lock } }) =>
      granted.some(({ id }) => lock.kind === 'bigint' && lock.id === id),
    )
  }

  /** The error of a wait that ended in this process, with so many guards of it to go first. */
  refusedHere(
    code: 'LOCK_TIMEOUT' | 'LOCK_BUSY',
    blockers: readonly Blocker[],
    { waitedMs, ahead }: { readonly waitedMs: number; readonly ahead: number },
  ): Error {
    if (code === 'LOCK_BUSY') this.#events.busy()
    else this.#events.timeout(waitedMs, blockers)
    const endedBy = code === 'LOCK_TIMEOUT' ? ({ endedBy: 'wait' } as const) : {}
    return this.#contention(code, undefined, blockers, { ahead, ...endedBy })
  }

  /** Takes what is free, without waiting. */
  attempt(transaction: Transaction<Tx>, terms: AcquireTerms): Promise<LockAnswer> {
    return traced(
      'lock',
      () => ({ locks: this.#wanted }),
      async (span) => {
        this.#events.requested()
        try {
          const request = this.#request({ ...terms, wait: nowait }, undefined)
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

  #request(terms: AcquireTerms, budgetMs: number | undefined): LockRequest {
    const { how, limitMs, yields } = terms.wait
    return {
      wanted: this.#wanted,
      attempt: how === 'nowait',
      limitMs,
      yields,
      budgetMs,
      label: this.#setup.annotate ? this.#subject() : undefined,
      allowStaleSnapshot: terms.allowStaleSnapshot,
      first: false,
      brief: how === 'wait',
    }
  }

  /** For where the brief statement has granted nothing: it is busy, and there are settings to be heeded. */
  #whole(terms: AcquireTerms, budgetMs: number | undefined): LockRequest {
    return { ...this.#request(terms, budgetMs), brief: false }
  }

  async #take(transaction: Transaction<Tx>, request: LockRequest): Promise<LockAnswer> {
    const state = transaction.state()
    if (state === 'none') throw this.#refusal('LOCK_OUTSIDE_TRANSACTION')
    const taking = transaction.query(lockStatement(request))
    const unsure = state === 'unknown'
    // A client that pipelines spends no round trip on a statement sent right behind.
    const together = unsure && this.#driver.capabilities.pipelines === true
    const marked = together ? this.#hasMarker(transaction) : undefined
    const rows = await firstOf(taking, marked)
    await marked?.catch(() => undefined)
    const answer = this.#judged(rows, request)
    if (request.brief && !answer.complete)
      return await this.#heeding(transaction, { ...request, brief: false })
    // In autocommit the marker, like the lock, was gone as soon as the statement ended.
    if (unsure && answer.granted.length > 0 && !(await (marked ?? this.#hasMarker(transaction)))) {
      throw this.#refusal('LOCK_OUTSIDE_TRANSACTION')
    }
    await this.#assertReal(transaction, answer)
    return answer
  }

  /** Where the transaction has limits of its own; they are asked for now, because afterwards it may be lost. */
  async #heeding(transaction: Transaction<Tx>, request: LockRequest): Promise<LockAnswer> {
    const [own] = await transaction.query(ownTimeouts)
    this.#ownTimeouts = own
    return await this.#take(transaction, request)
  }

  /** Reads the answer of a lock statement and throws where the lock would be worthless. */
  #judged(
    [row]: readonly Row[],
    { attempt, brief }: Pick<LockRequest, 'attempt' | 'brief'>,
  ): LockAnswer {
    if (row === undefined) throw this.#refusal('DRIVER_HANDLE_INVALID')
    const answer = lockAnswer(row)
    if (answer.refused === 'standby') throw this.#refusal('LOCK_ON_STANDBY')
    if (answer.refused === 'stale') throw this.#refusal('LOCK_STALE_SNAPSHOT')
    // Trying does not wait, so it cannot close a cycle.
    if (attempt || (brief && !answer.complete)) return answer
    // A lock function that returns without a grant and without an error is no lock function.
    if (!answer.complete) throw this.#refusal('ENGINE_LOCKS_ARE_STUBS')
    this.#watchOrder(answer)
    return answer
  }

  /** The marker is set by every grant, for as long as the transaction lasts. */
  async #hasMarker(transaction: Transaction<Tx>): Promise<boolean> {
    const [row] = await transaction.query(markerStatement)
    return isTrue(row?.['held'])
  }

  /** Once per driver: an engine that only pretends has no such row. */
  async #assertReal(transaction: Transaction<Tx>, { granted }: LockAnswer): Promise<void> {
    if (granted.length === 0 || provenDrivers.has(this.#driver)) return
    const [row] = await transaction.query(locksAreReal)
    if (isTrue(row?.['alone'])) throw this.#refusal('ENGINE_ONE_SESSION')
    if (!isTrue(row?.['real'])) throw this.#refusal('ENGINE_LOCKS_ARE_STUBS')
    provenDrivers.add(this.#driver)
  }

  /** One lock alone, as most guards take, has no order. */
  #watchOrder(answer: LockAnswer): void {
    const { before, rowsBefore, granted, pid } = answer
    if (granted.length < 2 && before.length === 0 && rowsBefore.length === 0) return
    const { order, memory } = this.#setup
    order.saw(seenLocks(answer, memory, order), this.#site, () => ({ locks: this.#wanted, pid }))
  }

  /**
   * Starts the held-too-long watch and tells who listens. `caller` is the caller's transaction,
   * whose end we do not see; without it the returned function is called at the end.
   */
  granted(
    answer: LockAnswer,
    caller: Transaction<Tx> | undefined,
    beside: Executor | undefined,
  ): () => void {
    const { pid, granted, before, complete } = answer
    const [token] = granted
    if (complete) this.#events.acquired(answer)
    const watch = this.#setup.watch?.(beside)
    if (watch === undefined || token === undefined) return () => this.#events.released(pid)
    const state = caller === undefined ? undefined : () => caller.state()
    const hold = watch.start(
      {
        pid,
        locks: complete ? this.#wanted : this.#among(granted),
        token,
        site: this.#site,
        state,
      },
      before.length > 0,
    )
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

  /** The session has another transaction as well. */
  sharedSession(): Error {
    return this.#refusal('TX_SESSION_SHARED')
  }

  #refusal(code: RefusalCode): Error {
    const about = subjectOf(this.#wanted)
    const details = {
      subject: this.#subject(),
      names: this.#events.names,
      client: this.#driver.name,
    }
    return holdfastError(code, { about, details })
  }

  /** A usable transaction can be asked itself; after an abort another connection has to. */
  async #timeout(
    cause: unknown,
    transaction: Transaction<Tx>,
    isUsable: boolean,
    wait: EndedWait,
  ): Promise<unknown> {
    const { waitedMs } = this.#events
    const executor = isUsable ? transaction : (transaction.beside ?? this.#driver.alone)
    const looked = await lookAtHolders(executor, this.#wanted, wait, isUsable)
    const { blockers, endedBy } = looked
    if (wait.canceled !== undefined && endedBy === undefined) {
      // Somebody has cancelled it.
      this.#events.failed(cause)
      return cause
    }
    this.#events.timeout(waitedMs, blockers)
    const more = endedBy === undefined ? {} : { endedBy }
    return this.#contention('LOCK_TIMEOUT', cause, blockers, more)
  }

  /** Who holds this key of them now; nothing if there is no answer in time. */
  async look(executor: Executor, key: LockKey): Promise<readonly Blocker[] | undefined> {
    return await holdersOf(executor, [{ key, mode: 'exclusive' }])
  }

  #contention(
    code: 'LOCK_TIMEOUT' | 'LOCK_BUSY',
    cause: unknown,
    blockers: readonly Blocker[],
    more: { readonly ahead?: number; readonly endedBy?: EndedBy } = {},
  ): Error {
    const details = { subject: this.#subject(), names: this.#events.names, ...more }
    return holdfastError(code, { about: subjectOf(this.#wanted), cause, details, blockers })
  }
}
