import { type Driver, hasSessions, type Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { type HandlerPlaces, handlerPlacesOf } from '../core/handler-places.ts'
import type { ClaimsTroubleEvent } from '../core/events/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { renewalsPerLease } from '../core/lease-keeper.ts'
import { endedInTime, type StopOptions, type Stopped } from '../core/options/stopping.ts'
import { runTransaction } from '../tx/run.ts'
import type { HeldClaim } from './claim.ts'
import { handled, whyEnded } from './handled.ts'
import { Hearing } from './hearing.ts'
import { invalid, isLimited } from './layout.ts'
import type { LeaseVerbs } from './lease-claims.ts'
import type { HandlerContext, RowHandler, Worker } from './run-options.ts'
import type { RunTerms } from './run-terms.ts'
import { Wakeable } from './wakeable.ts'

interface Active<R> {
  readonly claim: HeldClaim<R>
  readonly abort: AbortController
  /** Its end is being written: that the row is not claimed any more is no loss. */
  finishing: boolean
  /** Resolved when its end takes longer than its lease: nobody waits for it any more. */
  readonly left: PromiseWithResolvers<void>
}

/** Handlers at a time, unless somebody says otherwise. */
const usual = 10
const looksPerLease = 20
/** What rows are recovered in line with. */
const recovery = Symbol('recovery')

export function startWorker<Tx, R>(
  driver: Driver<Tx>,
  claims: LeaseVerbs<Tx, R>,
  terms: RunTerms<Tx, R>,
): Worker {
  return new RunningWorker(driver, claims, terms)
}

class RunningWorker<Tx, R> implements Worker {
  readonly #driver: Driver<Tx>
  readonly #claims: LeaseVerbs<Tx, R>
  readonly #work: (active: Active<R>) => Promise<void>
  readonly #concurrency: number
  readonly #places: HandlerPlaces
  readonly #poll: RunTerms<Tx, R>['poll']
  readonly #active = new Set<Active<R>>()
  readonly #slots = new Wakeable()
  readonly #waiting = new Wakeable()
  readonly #timers: NodeJS.Timeout[] = []
  readonly #loop: Promise<void>
  readonly #hearing: Hearing<Tx> | undefined
  /** What goes on beside the handlers; see `lineOf`. */
  readonly #lines = new Map<unknown, Promise<void>>()
  /** Errors that many were told of at once are told to others once. */
  readonly #told = new WeakSet<object>()
  #ending: 'stop' | 'drain' | undefined
  #closed: Promise<void> | undefined

  constructor(driver: Driver<Tx>, claims: LeaseVerbs<Tx, R>, terms: RunTerms<Tx, R>) {
    const { concurrency, handler, transactionHandler, recoverMs, listen } = terms
    this.#driver = driver
    this.#claims = claims
    this.#places = handlerPlacesOf(driver)
    this.#concurrency =
      transactionHandler === undefined ? (concurrency ?? usual) : this.#withRoom(concurrency)
    this.#poll = terms.poll
    this.#work =
      transactionHandler === undefined
        ? (active) => this.#alone(active, handler as RowHandler<R>['handler'])
        : (active) => this.#together(active, transactionHandler)
    const { leaseMs } = claims.settings
    this.#timers.push(setInterval(() => this.#beat(), leaseMs / renewalsPerLease))
    this.#timers.push(setInterval(() => this.#endOverdue(), leaseMs / looksPerLease))
    if (recoverMs !== undefined) {
      const recover = (): void => this.#inLine(recovery, 'recover', () => this.#recover())
      this.#timers.push(setInterval(recover, recoverMs))
    }
    this.#hearing = listen === undefined ? undefined : this.#listen(listen)
    this.#loop = this.#run()
  }

  /** Handlers that keep a connection leave one of the pool to heartbeats. Told to who asked for more. */
  #withRoom(asked: number | undefined): number {
    const { most } = this.#places
    const concurrency = asked ?? usual
    if (most === undefined || concurrency <= most) return concurrency
    const why = 'leaves no connection of the pool to heartbeats; give the pool more connections'
    if (most === 0) throw invalid('transactionHandler', why)
    if (asked !== undefined) this.#trouble('pool', invalid('concurrency', why))
    return most
  }

  get active(): number {
    return this.#active.size
  }

  wake(): void {
    this.#waiting.wake()
  }

  async stop(options?: StopOptions): Promise<Stopped> {
    this.#ending = 'stop'
    this.#slots.wake()
    this.#waiting.wake()
    const reason = holdfastError('CLAIM_STOPPED')
    const ended = await endedInTime(this.#close(), options, () => {
      for (const { abort } of this.#active) abort.abort(reason)
    })
    if (ended) return { left: 0 }
    for (const timer of this.#timers) clearInterval(timer)
    if (this.#active.size > 0) this.#trouble('handler', reason)
    // With no handler at work, it is a statement of ours that has no answer.
    return { left: Math.max(1, this.#active.size) }
  }

  async drain(): Promise<void> {
    this.#ending ??= 'drain'
    this.#waiting.wake()
    await this.#close()
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.stop()
  }

  async #close(): Promise<void> {
    this.#closed ??= (async () => {
      await this.#loop
      while (this.#active.size > 0) await this.#slots.wait(undefined)
      for (const timer of this.#timers) clearInterval(timer)
      await Promise.all(this.#lines.values())
      await this.#hearing?.end()
    })()
    await this.#closed
  }

  /** Claims as many rows as there are free slots, as soon as there are some. */
  async #run(): Promise<void> {
    let pauseMs = this.#poll.minMs
    while (this.#ending !== 'stop') {
      const free = this.#concurrency - this.#active.size
      if (free === 0) {
        await this.#slots.wait(undefined)
        continue
      }
      const got = await this.#claim(free)
      if (got === free) {
        pauseMs = this.#poll.minMs
        continue
      }
      if (got === 0 && this.#ending === 'drain') {
        // What is being worked on may fail and come back at once.
        if (this.#active.size === 0) return
        await this.#slots.wait(undefined)
        continue
      }
      if (got !== undefined && got > 0) pauseMs = this.#poll.minMs
      // A row that was locked for a moment, or one that falls due, is seen when we look again.
      await this.#waiting.wait(pauseMs * (0.75 + Math.random() / 2))
      pauseMs = Math.min(this.#poll.maxMs, pauseMs * 2)
    }
  }

  /** How many were claimed; `undefined` if nobody knows. */
  async #claim(free: number): Promise<number | undefined> {
    let claimed: HeldClaim<R>[]
    try {
      claimed = await this.#claims.claim(undefined, free)
    } catch (error) {
      this.#trouble('claim', error)
      return undefined
    }
    if (this.#ending === 'stop') {
      await this.#giveBack(claimed)
      return 0
    }
    for (const claim of claimed) {
      const left = Promise.withResolvers<void>()
      void this.#handle({ claim, abort: new AbortController(), finishing: false, left })
    }
    return claimed.length
  }

  /** Claimed by a call that was under way when the worker was stopped. */
  async #giveBack(claimed: readonly HeldClaim<R>[]): Promise<void> {
    try {
      await this.#claims.finish('release', claimed)
    } catch (error) {
      this.#trouble('finish', error)
    }
  }

  /** Never rejects. */
  async #handle(active: Active<R>): Promise<void> {
    this.#active.add(active)
    const ended = handled(this.#table, active, () => this.#work(active)).catch((error: unknown) =>
      this.#failed(active, error),
    )
    await Promise.race([ended, active.left.promise])
    this.#active.delete(active)
    this.#slots.wake()
    // A row less in flight: another one of the same key may be claimed.
    if (isLimited(this.#claims.settings.perKey)) this.#waiting.wake()
  }

  get #table(): string {
    return this.#claims.settings.layout.table.table
  }

  async #alone(
    active: Active<R>,
    handler: (row: R, context: HandlerContext<R>) => Promise<unknown>,
  ): Promise<void> {
    const { claim } = active
    await handler(claim.row, contextOf(active))
    if (this.#claims.wasJoined(claim)) return
    active.finishing = true
    try {
      const { lost } = await this.#claims.finish('complete', [claim])
      this.#claims.tellLost(lost, 'complete')
    } catch (error) {
      // The work is done and must not be counted as failed; the lease decides what happens next.
      this.#trouble('finish', error)
    }
  }

  async #together(
    active: Active<R>,
    handler: (tx: Tx, row: R, context: HandlerContext<R>) => Promise<unknown>,
  ): Promise<void> {
    const { claim, abort } = active
    const body = async ({ native }: Transaction<Tx>): Promise<void> => {
      abort.signal.throwIfAborted()
      await handler(native, claim.row, contextOf(active))
      // Last, so that heartbeats go on until then; from here the row is locked until the commit.
      active.finishing = true
      await this.#claims.finishIn(native, 'complete', [claim])
    }
    // Nothing of an attempt that was rolled back is finished: beats, deadline and signal count again.
    const onRetry = (): void => {
      active.finishing = false
      this.#claims.unjoin(claim)
      abort.signal.throwIfAborted()
    }
    const { driver, scopes } = this.#claims.placeOf(claim)
    const leave = await this.#places.take(abort.signal)
    try {
      await runTransaction(driver, body, { scopes, onRetry }, undefined, 'claims')
    } finally {
      leave()
    }
  }

  async #failed(active: Active<R>, error: unknown): Promise<void> {
    const { claim } = active
    this.#trouble('handler', error)
    active.finishing = true
    try {
      // What is lost belongs to somebody else; what was stopped has done nothing wrong.
      const outcome = whyEnded(active.abort, error)
      if (outcome === 'lost') return
      const verb = outcome === 'stopped' ? 'release' : 'fail'
      this.#claims.tellLost((await this.#claims.finish(verb, [claim], { error })).lost, verb)
    } catch (failure) {
      this.#trouble('finish', failure)
    }
  }

  /**
   * One statement for all claims of the process, also for those that a handler has finished in a transaction
   * of its own: one that could be made longer was not finished after all, because that was rolled back. Of several
   * primaries each has its own, and a bucket that is on its way is waited for by nobody else.
   */
  #beat(): void {
    const lines = new Map<unknown, Active<R>[]>()
    for (const active of this.#active) {
      if (active.finishing || active.abort.signal.aborted) continue
      const line = this.#claims.lineOf(active.claim)
      const before = lines.get(line)
      if (before === undefined) lines.set(line, [active])
      else before.push(active)
    }
    for (const [line, active] of lines) {
      this.#inLine(line, 'heartbeat', () => this.#beatFor(active))
    }
  }

  async #beatFor(active: readonly Active<R>[]): Promise<void> {
    const deadlines = active.map(({ claim }) => claim.deadline)
    const { lost } = await this.#claims.finish(
      'heartbeat',
      active.map(({ claim }) => claim),
    )
    active.forEach(({ claim }, at) => {
      if (claim.deadline !== deadlines[at]) this.#claims.unjoin(claim)
    })
    const gone = new Set(lost)
    this.#lose(
      active.filter(({ claim }) => gone.has(claim)),
      'heartbeat',
    )
  }

  /** By our own clock: without an answer from the server a lease is over when it may be over. */
  #endOverdue(): void {
    const now = performance.now()
    for (const { claim, finishing, left } of this.#active) {
      if (!finishing || claim.deadline > now) continue
      // Its row comes back by itself, if it was not finished after all.
      this.#trouble('finish', holdfastError('COMMIT_UNKNOWN'))
      left.resolve()
    }
    this.#lose(
      this.#held().filter(({ claim }) => claim.deadline <= now),
      'deadline',
    )
  }

  #held(): Active<R>[] {
    return [...this.#active].filter(
      ({ claim, finishing, abort }) =>
        !finishing && !abort.signal.aborted && !this.#claims.wasJoined(claim),
    )
  }

  #lose(those: readonly Active<R>[], verb: 'heartbeat' | 'deadline'): void {
    // Some may have ended while the server was asked.
    const held = new Set(this.#held())
    const lost = those.filter((each) => held.has(each))
    this.#claims.tellLost(
      lost.map(({ claim }) => claim),
      verb,
    )
    for (const { abort, claim } of lost) {
      abort.abort(holdfastError('CLAIM_LOST', { details: { lost: [claim.key] } }))
    }
  }

  async #recover(): Promise<void> {
    const most = 500
    for (;;) {
      const { freed, failure } = await this.#claims.recover(most)
      if (freed > 0) this.#waiting.wake()
      if (failure !== undefined) this.#trouble('recover', failure)
      if (freed < most || this.#ending !== undefined) return
    }
  }

  #listen(channel: string): Hearing<Tx> | undefined {
    if (!hasSessions(this.#driver)) return undefined
    const wake = (): void => this.#waiting.wake()
    return new Hearing(this.#driver, {
      channel,
      wake,
      trouble: (error) => this.#trouble('listen', error),
    })
  }

  /** One round at a time in each line: one that takes long is the last one there for a while. */
  #inLine(line: unknown, during: 'heartbeat' | 'recover', round: () => Promise<void>): void {
    if (this.#lines.has(line)) return
    const running = round()
      .catch((error: Error) => {
        if (!this.#told.has(error)) this.#trouble(during, error)
        this.#told.add(error)
      })
      .finally(() => {
        this.#lines.delete(line)
      })
    this.#lines.set(line, running)
  }

  #trouble(during: ClaimsTroubleEvent['during'], error: unknown): void {
    publish(channels.claimsTrouble, { table: this.#table, during, error })
  }
}

function contextOf<R>({ claim, abort }: Active<R>): HandlerContext<R> {
  return { claim, attempt: claim.attempt, signal: abort.signal }
}
