import type { Crowd } from '../../core/activity.ts'
import type { Executor } from '../../core/driver.ts'
import { durationMs } from '../../core/options/duration.ts'
import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import { sqlStateOf } from '../../core/sql-state.ts'
import type { LedgerCalls } from '../../engines/postgres/ledger/ledger.ts'
import { resolveMs } from '../../tx/ask-again.ts'
import type { LineAnswer } from './answer.ts'
import { assertCounts, type CombinerOptions } from './combiner-options.ts'
import { LeftOut } from './left-out.ts'
import { heardSince, tellAnswered, tellApplied, tellFailed } from './ledger-events.ts'
import { NewCall, type NewCalls, type ShortLine } from './new-call.ts'
import { sendNew, setBack } from './send-new.ts'
import { accountsOf, type Request } from './request.ts'
import { keptAccounts, whoKeeps } from './kept-accounts.ts'
import { applyTogether, isLocked, unknown } from './send-alone.ts'
import {
  nextBatch,
  refuseLate,
  requestsOf,
  type Waiting,
  WaitingRequest,
  ways,
  whoWaitAlike,
} from './waiting.ts'

/** Fewer than this are not worth a second call. */
const worthSplitting = 64
/** How often those are looked for whose time is up. */
const sweepMs = 50
/** So often a call is tried at most that the server ends for its statement_timeout, and not for a lock. */
const mostTries = 5

/** Told of operations that were not let in, with the accounts that are locked. */
type Shut = (left: readonly Waiting[], locked: ReadonlySet<string>) => void

/**
 * Puts operations together while earlier calls are under way, and sends them at once when a lane is
 * free: there is no timer, and a single caller waits for nobody. Every operation has its own answer,
 * and one that fails does not take others with it.
 *
 * Nobody waits for a stranger: an account that somebody's transaction keeps locked is set apart, with everybody who
 * waits for it, and has a lane of its own. The others pass.
 */
export class Combiner {
  readonly #executor: Executor
  readonly #calls: LedgerCalls
  readonly #books: { readonly hasDebit: boolean }
  readonly #schema: string
  readonly #lanes: number
  readonly #batch: number
  readonly #coalesce: boolean
  readonly #limitMs: number
  readonly #most: number
  readonly #forMs: number
  #waiting: Waiting[] = []
  /** Who waits for an account that is locked, by the account; who has been tried last comes last. */
  readonly #apart = new Map<string, Waiting[]>()
  #isPumping = false
  #isSweeping = false
  /** Accounts of which something was left out lately: these go to `apply` right away. */
  readonly #leftOut = new LeftOut()
  #underWay = 0
  #woken = false
  /** Until then nothing goes by `apply_new`. */
  #noneNewUntil = 0

  constructor(
    executor: Executor,
    calls: LedgerCalls,
    books: { readonly hasDebit: boolean },
    options: CombinerOptions & { readonly schema: string },
  ) {
    const { lanes = 2, batch = 500, coalesce = true, queue = 100_000, wait = '10 s' } = options
    assertCounts({ lanes, batch, queue })
    this.#executor = executor
    this.#calls = calls
    this.#books = books
    this.#schema = options.schema
    this.#lanes = lanes
    this.#batch = batch
    this.#coalesce = coalesce
    this.#limitMs = durationMs(wait, 'wait')
    this.#most = queue
    this.#forMs = resolveMs(options)
  }

  async submit(request: Request): Promise<LineAnswer[]> {
    request.operation.signal?.throwIfAborted()
    const waiting = new WaitingRequest(request, heardSince(), this.#limitMs)
    this.#enter(waiting)
    return await waiting.answered
  }

  /** One line that is as plain as can be. @throws LEDGER_OVERLOADED at once, and then nothing was done */
  submitNew(calls: NewCalls, line: ShortLine, crowd: Crowd): NewCall {
    const call = new NewCall(calls, line, heardSince(), this.#limitMs, crowd)
    this.#enter(call)
    crowd.begun()
    return call
  }

  /** @throws LEDGER_OVERLOADED */
  #enter(waiting: Waiting): void {
    if (!this.#coalesce) {
      void this.#sendAlone(waiting)
      return
    }
    const length = this.#length()
    if (length >= this.#most) {
      throw holdfastError('LEDGER_OVERLOADED', { details: { waiting: length } })
    }
    if (waiting.way !== ways.whole && this.#leftOut.has(waiting.base ?? ''))
      waiting.way = ways.whole
    if (this.#setApart(waiting)) return
    this.#waiting.push(waiting)
    if (this.#woken || this.#underWay >= this.#lanes) return
    this.#woken = true
    // What the same turn of the event loop asks for goes out together.
    queueMicrotask(() => this.#fillLanes())
  }

  #length(): number {
    let length = this.#waiting.length
    for (const queue of this.#apart.values()) length += queue.length
    return length
  }

  /** One operation that is never put together with others. */
  async #sendAlone(waiting: Waiting): Promise<void> {
    do await this.#send([waiting])
    while (!waiting.over && performance.now() < waiting.ends)
    if (!waiting.over) await this.#giveUp([waiting])
  }

  /** Sends back to the queue what `apply_plain` left out: new, short or special accounts, known ids. */
  #sendToApply(left: readonly Waiting[]): void {
    if (left.length === 0) return
    for (const waiting of left) {
      this.#leftOut.add(waiting.base ?? '')
      waiting.way = ways.whole
    }
    // They have waited longest.
    this.#waiting = left.concat(this.#waiting)
  }

  #fillLanes(): void {
    this.#woken = false
    while (this.#underWay < this.#lanes && this.#waiting.length > 0) {
      // Two calls keep both sides busy: one is worked on while the next is put together.
      const share = Math.ceil(this.#waiting.length / (this.#lanes - this.#underWay))
      const batch = this.#take(Math.min(this.#batch, Math.max(worthSplitting, share)))
      if (batch.length === 0) return
      this.#underWay += 1
      void this.#send(batch, (left, locked) => this.#sort(left, locked)).finally(() => {
        this.#underWay -= 1
        this.#fillLanes()
      })
    }
    if (this.#waiting.length > 0) this.#sweepLater()
  }

  #take(most: number): Waiting[] {
    const [batch, left] = nextBatch(this.#waiting, most)
    this.#waiting = left
    return batch
  }

  /**
   * Never rejects: every operation is told its own outcome. Those that were not let in have not been applied; `shut` is
   * told of them, with the accounts that are locked. Without it they are simply not over.
   */
  async #send(batch: readonly Waiting[], shut?: Shut): Promise<void> {
    const sentAt = heardSince()
    for (const waiting of batch) waiting.send()
    const way = batch.length === 1 ? ways.whole : batch[0]?.way
    if (way === ways.fresh && performance.now() >= this.#noneNewUntil) {
      await this.#sendNew(batch as readonly NewCall[], sentAt, shut)
      return
    }
    try {
      const plain = way !== ways.whole
      let doubt = false
      const answers = await applyTogether(this.#executor, this.#calls, requestsOf(batch), {
        plain,
        hasDebit: this.#books.hasDebit,
        forMs: this.#forMs,
        onDoubt: () => void (doubt = true),
      })
      tellAnswered(batch, answers, sentAt, false)
      const left: Waiting[] = []
      batch.forEach((waiting, at) => {
        const answer = answers[at] ?? []
        if (!plain || answer.length > 0) {
          waiting.resolve(answer)
          return
        }
        waiting.doubted ||= doubt
        waiting.setBack()
        left.push(waiting)
      })
      this.#sendToApply(left)
    } catch (error) {
      await this.#failed(batch, error, sentAt, shut)
    }
  }

  /** The same for those that are thought to be new. Where one is not, or the function is not there, all go the longer way. */
  async #sendNew(batch: readonly NewCall[], sentAt: number, shut: Shut | undefined): Promise<void> {
    try {
      const sent = await sendNew(this.#executor, this.#calls, batch, this.#forMs)
      const { verdicts, doubt, longerForMs } = sent
      if (longerForMs !== undefined) {
        this.#noneNewUntil = performance.now() + longerForMs
        setBack(batch, doubt, ways.plain)
        this.#waiting = (batch as readonly Waiting[]).concat(this.#waiting)
        return
      }
      tellApplied(batch, (at) => verdicts[at] !== undefined, sentAt)
      const left = batch.filter((call, at) => {
        const verdict = verdicts[at]
        if (verdict !== undefined) call.accept(verdict)
        return verdict === undefined
      })
      setBack(left, doubt, ways.whole)
      this.#sendToApply(left)
    } catch (error) {
      await this.#failed(batch, error, sentAt, shut)
    }
  }

  async #failed(
    batch: readonly Waiting[],
    error: unknown,
    sentAt: number,
    shut: Shut | undefined,
  ): Promise<void> {
    const rejectAll = (reason: unknown): void => {
      tellFailed(batch, reason, sentAt, false)
      for (const waiting of batch) waiting.reject(reason)
    }
    const state = sqlStateOf(error)
    if (isLocked(error)) {
      const seen = shut === undefined ? undefined : await this.#lockedOf(batch)
      // Where nobody could be asked, the connection that asked was lost: they are tried again, until their time is up.
      const locked = seen ?? new Set<string>()
      const isSlow = state === '57014' && batch.every(({ tries }) => tries > mostTries)
      if (shut !== undefined && isSlow && locked.size === 0) return rejectAll(error)
      for (const waiting of batch) waiting.setBack()
      // Before they go out again, where nobody looks for those whose time is up.
      if (shut !== undefined) this.#giveUpLate(batch)
      const open = batch.filter(({ over }) => !over)
      return shut?.(open, locked)
    }
    // A statement fails as a whole, so the one that made it fail is looked for by halves. If
    // nobody could be reached, that would only multiply the failures.
    if (batch.length > 1 && state !== undefined && !isHoldfastError(error)) {
      const middle = Math.ceil(batch.length / 2)
      await this.#send(batch.slice(0, middle), shut)
      await this.#send(batch.slice(middle), shut)
      return
    }
    rejectAll(error)
    this.#giveUpWaiting(error)
  }

  async #lockedOf(batch: readonly Waiting[]): Promise<ReadonlySet<string> | undefined> {
    return await keptAccounts(this.#executor, this.#schema, requestsOf(batch))
  }

  /** Sets those apart whose account is locked; the others go on. */
  #sort(left: readonly Waiting[], locked: ReadonlySet<string>): void {
    for (const account of locked) if (!this.#apart.has(account)) this.#apart.set(account, [])
    this.#waiting = left.filter((waiting) => !this.#setApart(waiting)).concat(this.#waiting)
    // Who came since for the same account comes after those.
    this.#waiting = this.#waiting.filter((waiting) => !this.#setApart(waiting))
  }

  /** True if it has to wait for an account that is locked. */
  #setApart(waiting: Waiting): boolean {
    if (this.#apart.size === 0) return false
    const { base } = waiting
    const accounts =
      waiting.lines === 1 && base !== undefined ? [base] : accountsOf(waiting.request)
    const account = accounts.find((each) => this.#apart.has(each))
    if (account === undefined) return false
    this.#apart.get(account)?.push(waiting)
    this.#sweepLater()
    void this.#pump()
    return true
  }

  /** Tries accounts that are set apart, one after the other, and lets those go on whose account is free again. */
  async #pump(): Promise<void> {
    if (this.#isPumping) return
    this.#isPumping = true
    while (this.#apart.size > 0) {
      const heads: Waiting[] = []
      for (const [account, queue] of this.#apart) {
        const head = queue.find(({ over }) => !over)
        if (head === undefined) this.#apart.delete(account)
        else heads.push(head)
      }
      if (heads.length === 0) break
      const locked = await this.#lockedOf(heads)
      if (locked !== undefined) this.#letGo(locked)
      const [first] = this.#apart
      if (first === undefined) break
      const [account, queue] = first
      // The next time it is another one's turn.
      this.#apart.delete(account)
      this.#apart.set(account, queue)
      const next = queue.find(({ over }) => !over)
      if (next === undefined) continue
      if (next.isLate(performance.now())) {
        void this.#giveUp([next])
        continue
      }
      // In the database's own line for as long as a shared call may wait, so that it is not passed over for ever.
      await this.#send([next])
      if (next.over)
        this.#letGo(new Set([...this.#apart.keys()].filter((each) => each !== account)))
    }
    this.#isPumping = false
  }

  /** Whoever waits for an account that is not locked any more goes on, before those who came later. */
  #letGo(locked: ReadonlySet<string>): void {
    const free: Waiting[] = []
    for (const [account, queue] of this.#apart) {
      if (locked.has(account)) continue
      this.#apart.delete(account)
      free.push(...queue.filter(({ over }) => !over))
    }
    if (free.length === 0) return
    this.#waiting = free.filter((waiting) => !this.#setApart(waiting)).concat(this.#waiting)
    this.#fillLanes()
  }

  /** Tells those whose time is up. Runs only while somebody waits. */
  #sweepLater(): void {
    if (this.#isSweeping) return
    this.#isSweeping = true
    setTimeout(() => {
      this.#isSweeping = false
      const now = performance.now()
      // Nobody is known to be in the way of these.
      const unsent = this.#waiting.filter((waiting) => waiting.isLate(now))
      refuseLate(unsent, [])
      for (const queue of this.#apart.values()) {
        const late = this.#giveUpLate(queue, now)
        for (const waiting of late) queue.splice(queue.indexOf(waiting), 1)
      }
      if (this.#waiting.length > 0 || this.#apart.size > 0) this.#sweepLater()
    }, sweepMs)
  }

  /** Gives those that are late, who are told when it is known who is in their way. */
  #giveUpLate(waiting: readonly Waiting[], now = performance.now()): readonly Waiting[] {
    const late = waiting.filter((each) => each.isLate(now))
    for (const alike of whoWaitAlike(late)) void this.#giveUp(alike)
    return late
  }

  /** Of those who wait for the same accounts. */
  async #giveUp(late: readonly Waiting[]): Promise<void> {
    for (const waiting of late) waiting.leave()
    const [{ request }] = late as readonly [Waiting]
    refuseLate(late, await whoKeeps(this.#executor, this.#schema, request))
  }

  /** Nobody waits for a database that cannot be reached much longer than was agreed. */
  #giveUpWaiting(error: unknown): void {
    if (!isHoldfastError(error, 'CONNECTION_UNAVAILABLE', 'CONNECTION_LOST', unknown)) return
    const since = performance.now() - this.#forMs
    const late = this.#waiting.filter(({ arrived, over }) => arrived < since && !over)
    if (late.length === 0) return
    this.#waiting = this.#waiting.filter(({ arrived }) => arrived >= since)
    const unsent = holdfastError('CONNECTION_UNAVAILABLE', { cause: error })
    tellFailed(late, unsent, 0, false)
    for (const waiting of late) waiting.reject(unsent)
  }
}
