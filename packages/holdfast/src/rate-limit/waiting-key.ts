import type { Crowd } from '../core/activity.ts'
import { failedAtCaller } from '../core/errors/at-caller.ts'
import type { LimitKey, Taking } from '../engines/postgres/rate-limit/rate-limit.ts'
import { schemaMissing } from '../engines/postgres/sql/call-function.ts'
import { amountOf, type Terms } from './terms.ts'
import { granted, type KeyAnswer, leftOf, type LimitVerdict, refused } from './verdict.ts'

/** One call that somebody waits for: one object and one promise, since there are very many. */
export class Call {
  readonly cost: number
  /** When nobody waits for it any longer, unless it is on its way; by the clock that only goes forward. */
  readonly ends: number
  readonly verdict: Promise<LimitVerdict>
  /** It is part of the amount that is asked for. */
  isAsked = false
  readonly #resolve: (verdict: LimitVerdict | Promise<never>) => void
  readonly #reject: (error: unknown) => void
  /** Who is told that it is over, and makes of a failure what its caller is told; see `ShortWay`. */
  readonly #crowd: Crowd | undefined

  constructor(cost: number, ends: number, crowd: Crowd | undefined) {
    const { promise, resolve, reject } = Promise.withResolvers<LimitVerdict>()
    this.cost = cost
    this.ends = ends
    this.verdict = promise
    this.#resolve = resolve
    this.#reject = reject
    this.#crowd = crowd
  }

  answer(verdict: LimitVerdict): void {
    this.#crowd?.over()
    this.#resolve(verdict)
  }

  fail(error: unknown): void {
    const told = schemaMissing(error) ?? error
    if (this.#crowd === undefined) return this.#reject(told)
    this.#crowd.over()
    this.#resolve(failedAtCaller(told))
  }
}

/**
 * Calls of one key that wait together. They are asked for as one amount, which is granted as a whole or not at all. What
 * the database says is left decides who of them is refused, and who is asked for once more.
 */
export class WaitingKey implements Taking {
  readonly id: LimitKey
  readonly terms: Terms
  readonly #isRate: boolean
  #calls: Call[] = []
  /** The costs of those that are asked for, in the unit of the table. */
  amount = 0
  /** What was left when the database was asked last. */
  #room: number

  constructor(id: LimitKey, terms: Terms, isRate: boolean) {
    this.id = id
    this.terms = terms
    this.#isRate = isRate
    this.#room = leftOf(terms, 0)
  }

  get most(): number {
    return this.terms.most
  }

  get unit(): number {
    return this.terms.unit
  }

  get size(): number {
    return this.#calls.length
  }

  add(call: Call): void {
    this.#calls.push(call)
  }

  /** Those of another one for the same key, which came later. */
  take(later: WaitingKey): void {
    this.#calls.push(...later.#calls)
    later.#calls = []
  }

  /** Chooses who is asked for: whoever fits, in the order in which they came. At least one is. */
  choose(): void {
    let total = 0
    for (const call of this.#calls) {
      call.isAsked = call.cost <= this.#room - total
      if (call.isAsked) total += call.cost
    }
    const [first] = this.#calls
    if (total === 0 && first !== undefined) {
      first.isAsked = true
      total = first.cost
    }
    this.amount = amountOf(this.terms, total)
  }

  /** Tells everybody whose answer is known by now; whether somebody is left. */
  answer({ ok, clockUs, used }: KeyAnswer): boolean {
    const { terms } = this
    this.#room = leftOf(terms, used)
    let by = used - this.amount
    const left: Call[] = []
    for (const call of this.#calls) {
      const { cost } = call
      if (ok && call.isAsked) {
        by += cost * terms.unit
        call.answer(granted(terms, this.#isRate, { clockUs, used: by }))
      } else if (cost <= this.#room) left.push(call)
      else call.answer(refused(terms, this.#isRate, { clockUs, used }, cost))
    }
    this.#calls = left
    return left.length > 0
  }

  /** Takes out those whose time is up, and tells them why; whether somebody is left. */
  refuseLate(now: number, reason: () => Error): boolean {
    const late = this.#calls.filter(({ ends }) => ends <= now)
    if (late.length > 0) this.#calls = this.#calls.filter(({ ends }) => ends > now)
    for (const call of late) call.fail(reason())
    return this.#calls.length > 0
  }

  fail(error: unknown): void {
    for (const call of this.#calls) call.fail(error)
    this.#calls = []
  }
}
