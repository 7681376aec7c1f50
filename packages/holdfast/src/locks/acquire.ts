import type { CallSite } from '../core/locks/call-site.ts'
import type { Driver, Executor, Row, Statement, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { subjectOf } from '../core/locks/lock-key.ts'
import type { LockMemory } from '../core/locks/lock-memory.ts'
import type { OrderWatch } from '../core/locks/order-watch.ts'
import { traced } from '../core/events/tracing.ts'
import { nowait, type WaitTerms } from '../core/options/wait.ts'
import type { LockKey, WantedLock } from '../core/locks/wanted-lock.ts'
import type { TurnTerms } from '../tx/in-turn.ts'
import type { AcquireTerms } from './acquire-options.ts'
import type { LockAnswer, LockEngine, LockRefusal, LockTerms, LockToken, Taking } from './engine.ts'
import type { HoldWatch } from './hold-watch.ts'
import { LockEvents } from './lock-events.ts'
import type { Blocker } from '../core/events/event-map.ts'
import type { EndedBy } from '../core/errors/error-details.ts'

/** What the room was created with, shared by all its calls. */
export interface LockSetup {
  readonly engine: LockEngine
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

/** One acquisition in a transaction, ours or the caller's. */
export class Acquisition<Tx> {
  readonly #driver: Driver<Tx>
  readonly #setup: LockSetup
  readonly #wanted: readonly WantedLock[]
  readonly #site: CallSite
  readonly #events: LockEvents
  readonly #taking: Taking<Tx>
  /** In the caller's transaction, which may have settings that no other connection has. */
  #joined = false

  constructor(driver: Driver<Tx>, setup: LockSetup, wanted: readonly WantedLock[], site: CallSite) {
    this.#driver = driver
    this.#setup = setup
    this.#wanted = wanted
    this.#site = site
    this.#taking = setup.engine.taking(driver, wanted)
    for (const { key } of wanted) setup.memory.note(key)
    this.#events = new LockEvents(wanted, setup.memory)
  }

  /** The statement that `wait` would send first, for a driver that can send it with BEGIN. */
  opening(terms: AcquireTerms): Statement | undefined {
    if (terms.keepTransaction) return undefined
    return this.#taking.opening(this.#terms(terms, undefined))
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

  /** Waits for the locks, at most as long as the options allow. `askedAt` is when what `opened` answers was sent. */
  wait(
    transaction: Transaction<Tx>,
    terms: AcquireTerms,
    opened?: Promise<readonly Row[]>,
    askedAt?: number,
  ): Promise<LockAnswer> {
    return traced(
      'lock',
      () => ({ locks: this.#wanted }),
      () => this.#wait(transaction, terms, opened, askedAt),
    )
  }

  async #wait(
    transaction: Transaction<Tx>,
    terms: AcquireTerms,
    opened: Promise<readonly Row[]> | undefined,
    askedAt = performance.now(),
  ): Promise<LockAnswer> {
    const { keepTransaction: kept } = terms
    const asked = this.#terms(terms, transaction.budgetMs)
    let answer: LockAnswer
    this.#events.requested()
    try {
      answer = kept
        ? await transaction.nested((inner) => this.#take(inner, asked))
        : await this.#take(transaction, asked, opened)
    } catch (error) {
      const { waitedMs: told } = this.#events
      const failed = {
        transaction,
        kept,
        joined: this.#joined,
        opened: opened !== undefined,
        waitedMs: performance.now() - askedAt,
      }
      const contended = await this.#taking.ended(error, asked, failed)
      if (contended === undefined) {
        this.#events.failed(error)
        throw error
      }
      const { blockers, endedBy } = contended
      this.#events.timeout(told, blockers)
      const more = endedBy === undefined ? {} : { endedBy }
      throw this.#contention('LOCK_TIMEOUT', error, blockers, more)
    }
    if (!answer.complete) {
      this.#events.busy()
      const blockers = await this.#taking.inTheWay(transaction)
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
          const asked = this.#terms({ ...terms, wait: nowait }, undefined)
          const answer = await this.#take(transaction, asked)
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

  #terms(
    { wait: { how, limitMs, yields }, allowStaleSnapshot }: AcquireTerms,
    budgetMs: number | undefined,
  ): LockTerms {
    const label = this.#setup.annotate ? this.#subject() : undefined
    return { attempt: how === 'nowait', limitMs, yields, budgetMs, label, allowStaleSnapshot }
  }

  /** Throws where the lock would be worthless. */
  async #take(
    transaction: Transaction<Tx>,
    terms: LockTerms,
    opened?: Promise<readonly Row[]>,
  ): Promise<LockAnswer> {
    const answer = await this.#taking.take(transaction, terms, opened)
    if (answer.refused !== undefined) throw this.#refusal(answer.refused)
    // Trying does not wait, so it cannot close a cycle.
    if (!terms.attempt) this.#watchOrder(answer)
    return answer
  }

  /** One lock alone, as most guards take, has no order. */
  #watchOrder(answer: LockAnswer): void {
    const { before, rowsBefore, granted, pid } = answer
    if (granted.length < 2 && before.length === 0 && rowsBefore.length === 0) return
    const { engine, order, memory } = this.#setup
    const seen = engine.seen(answer, memory, order)
    order.saw(seen, this.#site, () => ({ locks: this.#wanted, pid }))
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

  #refusal(code: LockRefusal | 'TX_SESSION_SHARED'): Error {
    const about = subjectOf(this.#wanted)
    const details = {
      subject: this.#subject(),
      names: this.#events.names,
      client: this.#driver.name,
    }
    return holdfastError(code, { about, details })
  }

  /** Who holds this key of them now; nothing if there is no answer in time. */
  async look(executor: Executor, key: LockKey): Promise<readonly Blocker[] | undefined> {
    return await this.#setup.engine.holders(executor, key)
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
