import type { Crowd } from '../core/activity.ts'
import type { Executor } from '../core/driver.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import {
  type LimitKey,
  lockedLimits,
  type TakingStatement,
} from '../engines/postgres/rate-limit/rate-limit.ts'
import { askAgain } from '../tx/ask-again.ts'
import { byPlace } from './limit-key.ts'
import type { Terms } from './terms.ts'
import { answersIn, type LimitVerdict } from './verdict.ts'
import { Call, WaitingKey } from './waiting-key.ts'

/** How calls outside a transaction are sent. */
export interface BatchSettings {
  readonly schema: string
  /** For how long a database that cannot be reached is asked again. */
  readonly forMs: number
  /** Longest wait of a call that was not sent. */
  readonly waitMs: number
  readonly name: string
  readonly isRate: boolean
}

/** Statements under way at once: one is worked on while the next is put together. */
const lanes = 2
/** Keys in one statement at most. */
const mostKeys = 500
/** Calls that may wait at once. */
const mostCalls = 100_000
/** How often those are looked for whose time is up. */
const sweepMs = 50

/**
 * Calls of one limit on one server. Those of the same moment share a statement, those of the same key a row of it; while
 * all lanes are taken, calls wait for each other. There is no timer: a single caller waits for nobody.
 *
 * A key whose row a transaction keeps locked is set apart, with everybody who waits for it, and tried by itself. The
 * others pass.
 */
export class Batches {
  readonly #executor: Executor
  readonly #statement: TakingStatement
  readonly #settings: BatchSettings
  /** By the key as the table has it. */
  readonly #keys = new Map<string, WaitingKey>()
  /** Keys in statements that are under way. */
  readonly #sent = new Set<string>()
  /** Other limits for keys that wait already: a row is changed once in a statement. */
  #later: WaitingKey[] = []
  readonly #apart = new Map<string, WaitingKey>()
  #calls = 0
  #underWay = 0
  #woken = false
  #isPumping = false
  #isSweeping = false

  constructor(executor: Executor, statement: TakingStatement, settings: BatchSettings) {
    this.#executor = executor
    this.#statement = statement
    this.#settings = settings
  }

  /** `crowd`: for a call that was asked for in the short way. @throws RATE_LIMIT_OVERLOADED at once */
  submit(id: LimitKey, terms: Terms, cost: number, crowd?: Crowd): Promise<LimitVerdict> {
    if (this.#calls >= mostCalls) {
      const details = { waiting: this.#calls, subject: this.#settings.name }
      throw holdfastError('RATE_LIMIT_OVERLOADED', { details })
    }
    this.#calls += 1
    const call = new Call(cost, performance.now() + this.#settings.waitMs, crowd)
    this.#waitingFor(id, terms).add(call)
    crowd?.begun()
    this.#wake()
    return call.verdict
  }

  /** What the same turn of the event loop asks for goes out together. */
  #wake(): void {
    if (this.#underWay >= lanes) this.#sweepLater()
    else if (!this.#woken) {
      this.#woken = true
      queueMicrotask(() => this.#fillLanes())
    }
  }

  #waitingFor(id: LimitKey, terms: Terms): WaitingKey {
    const apart = this.#apart.size === 0 ? undefined : this.#apart.get(id.uuid)
    const known = apart ?? this.#keys.get(id.uuid)
    if (known !== undefined && isAlike(known.terms, terms)) return known
    const made = new WaitingKey(id, terms, this.#settings.isRate)
    if (known === undefined) {
      this.#keys.set(id.uuid, made)
      return made
    }
    const same = ({ id: { uuid }, terms: its }: WaitingKey): boolean =>
      uuid === id.uuid && isAlike(its, terms)
    const later = this.#later.find(same)
    if (later === undefined) this.#later.push(made)
    return later ?? made
  }

  #fillLanes(): void {
    this.#woken = false
    this.#placeLater()
    while (this.#underWay < lanes) {
      const batch = this.#take()
      if (batch.length === 0) break
      this.#underWay += 1
      void this.#send(batch).finally(() => {
        this.#underWay -= 1
        for (const { id } of batch) this.#sent.delete(id.uuid)
        this.#fillLanes()
      })
    }
    if (this.#keys.size > 0) this.#sweepLater()
  }

  /** A key that is under way would only wait for itself: its calls are put together until that is answered. */
  #take(): WaitingKey[] {
    const batch: WaitingKey[] = []
    for (const [uuid, waiting] of this.#keys) {
      if (batch.length === mostKeys) break
      if (this.#sent.has(uuid)) continue
      this.#sent.add(uuid)
      this.#keys.delete(uuid)
      batch.push(waiting)
    }
    this.#placeLater()
    return batch.sort((one, other) => byPlace(one.id, other.id))
  }

  #placeLater(): void {
    if (this.#later.length === 0) return
    const later = this.#later
    this.#later = []
    for (const waiting of later) this.#putBack(waiting)
  }

  /** They have waited longer than those who wait for the same key by now. */
  #putBack(waiting: WaitingKey): void {
    const { uuid } = waiting.id
    const places = this.#apart.has(uuid) ? this.#apart : this.#keys
    const newer = places.get(uuid)
    if (newer !== undefined && !isAlike(newer.terms, waiting.terms)) {
      this.#later.push(waiting)
      return
    }
    if (newer !== undefined) waiting.take(newer)
    places.set(uuid, waiting)
  }

  /** Never rejects: every call is told its own outcome. */
  async #send(batch: readonly WaitingKey[]): Promise<void> {
    try {
      this.#putBackAll(await this.#ask(batch))
    } catch (error) {
      if (isLocked(error)) await this.#setApart(batch)
      else this.#fail(batch, error)
    }
  }

  /** Tells the calls of these keys; answers those of which somebody is left. */
  async #ask(batch: readonly WaitingKey[]): Promise<WaitingKey[]> {
    let calls = 0
    for (const waiting of batch) {
      waiting.choose()
      calls += waiting.size
    }
    const statement = this.#statement(batch)
    const [row] = await askAgain(() => this.#executor.query(statement), {
      forMs: this.#settings.forMs,
    })
    const answers = answersIn(row?.['answer'], batch.length)
    const left = batch.filter((waiting, at) => {
      const answer = answers[at]
      return answer === undefined || waiting.answer(answer)
    })
    for (const waiting of left) calls -= waiting.size
    this.#calls -= calls
    return left
  }

  #fail(batch: readonly WaitingKey[], error: unknown): void {
    for (const waiting of batch) {
      this.#calls -= waiting.size
      waiting.fail(error)
    }
  }

  /** Somebody's transaction has one of these rows. */
  async #setApart(batch: readonly WaitingKey[]): Promise<void> {
    try {
      const locked = await this.#lockedOf(batch)
      for (const waiting of locked) {
        if (!this.#apart.has(waiting.id.uuid)) this.#apart.set(waiting.id.uuid, waiting)
      }
      for (const waiting of batch) {
        if (this.#apart.get(waiting.id.uuid) !== waiting) this.#putBack(waiting)
      }
      this.#sweepLater()
      void this.#pump()
    } catch (error) {
      this.#fail(batch, error)
    }
  }

  async #lockedOf(keys: readonly WaitingKey[]): Promise<ReadonlySet<WaitingKey>> {
    const ids = keys.map(({ id }) => id)
    const [row] = await this.#executor.query(lockedLimits(this.#settings.schema, ids))
    const numbers = JSON.parse(String(row?.['answer'])) as number[]
    return new Set(numbers.map((number) => keys[number - 1] as WaitingKey))
  }

  /**
   * Asks for keys that are set apart: together for those that nobody has any more, and for one of the others in the
   * database's own line, which lasts a moment. So whoever waits behind many that are locked is not forgotten.
   */
  async #pump(): Promise<void> {
    if (this.#isPumping) return
    this.#isPumping = true
    while (this.#apart.size > 0) {
      const tried: WaitingKey[] = []
      for (const uuid of await this.#mayBeFree()) {
        const waiting = this.#apart.get(uuid)
        if (waiting === undefined) continue
        tried.push(waiting)
        // Whoever comes for this key meanwhile waits beside it; and the next time it is another one's turn.
        this.#apart.delete(uuid)
        this.#apart.set(uuid, new WaitingKey(waiting.id, waiting.terms, this.#settings.isRate))
      }
      this.#putBackAll(await this.#triedApart(tried))
    }
    this.#isPumping = false
    this.#fillLanes()
  }

  /** Of those that are set apart all that are not locked; if all are, the one whose turn it is. */
  async #mayBeFree(): Promise<readonly string[]> {
    const turn = [...this.#apart.keys()].slice(0, 1)
    if (this.#apart.size < 2) return turn
    const apart = [...this.#apart.values()].sort((one, other) => byPlace(one.id, other.id))
    try {
      const locked = await this.#lockedOf(apart)
      const free = apart.filter((waiting) => !locked.has(waiting))
      return free.length === 0 ? turn : free.map(({ id }) => id.uuid)
    } catch {
      // Whoever asks for the row is told what is wrong.
      return turn
    }
  }

  /** Those of whom somebody is left. Where nobody has the rows any more, they are set apart no longer. */
  async #triedApart(tried: readonly WaitingKey[]): Promise<readonly WaitingKey[]> {
    const asking = tried.filter(({ size }) => size > 0)
    try {
      const left = asking.length === 0 ? [] : await this.#ask(asking)
      return [...this.#joinAgain(tried), ...left]
    } catch (error) {
      if (isLocked(error)) return asking.filter((waiting) => this.#isInTime(waiting))
      this.#fail(asking, error)
      return this.#joinAgain(tried)
    }
  }

  /** Takes these keys out of those that are set apart, with everybody who has come for them. */
  #joinAgain(keys: readonly WaitingKey[]): WaitingKey[] {
    return keys.flatMap(({ id: { uuid } }) => {
      const there = this.#apart.get(uuid)
      this.#apart.delete(uuid)
      return there ?? []
    })
  }

  #putBackAll(left: readonly WaitingKey[]): void {
    for (const waiting of left) if (waiting.size > 0) this.#putBack(waiting)
  }

  /** Runs only while somebody waits. */
  #sweepLater(): void {
    if (this.#isSweeping) return
    this.#isSweeping = true
    setTimeout(() => {
      this.#isSweeping = false
      this.#refuseLate()
      if (this.#keys.size + this.#apart.size + this.#later.length > 0) this.#sweepLater()
    }, sweepMs)
  }

  #refuseLate(): void {
    for (const [uuid, waiting] of this.#keys) {
      if (!this.#isInTime(waiting)) this.#keys.delete(uuid)
    }
    // Those stay apart until the database says that nobody has the row any more.
    for (const waiting of this.#apart.values()) this.#isInTime(waiting)
    this.#later = this.#later.filter((waiting) => this.#isInTime(waiting))
  }

  /** Tells those whose time is up; whether somebody is left. */
  #isInTime(waiting: WaitingKey): boolean {
    const before = waiting.size
    const details = { subject: this.#settings.name }
    const isLeft = waiting.refuseLate(performance.now(), () =>
      holdfastError('RATE_LIMIT_TIMEOUT', { details }),
    )
    this.#calls -= before - waiting.size
    return isLeft
  }
}

function isAlike(one: Terms, other: Terms): boolean {
  return one.most === other.most && one.unit === other.unit && one.limit === other.limit
}

/** Nothing was done. */
export function isLocked(error: unknown): boolean {
  return !isHoldfastError(error) && sqlStateOf(error) === '55P03'
}
