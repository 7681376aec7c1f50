import type { Terms } from './terms.ts'

/** What a rate limit answers. */
export type LimitVerdict = LimitGranted | LimitRefused

interface Answered {
  readonly limit: number
  /** What is left after the call. */
  readonly available: number
  /** When all of it is available again, if nobody uses any until then. */
  readonly resetsAt: Date
}

/** The cost was used up. */
export interface LimitGranted extends Answered {
  readonly ok: true
}

/** Nothing was used up. */
export interface LimitRefused extends Answered {
  readonly ok: false
  readonly reason: 'insufficient'
  /** When the same cost may fit; nothing if it is above the limit. */
  readonly retryAt: Date | undefined
}

/** How a row stood when it was asked. */
export interface Standing {
  /** Of a window its end, of a rate the moment itself; microseconds since 1970, on the database's clock. */
  readonly clockUs: number
  /** In the unit of the table. */
  readonly used: number
}

/** How many of the caller's units are left. */
export function leftOf({ most, unit }: Terms, used: number): number {
  return Math.max(0, Math.floor((most - used) / unit))
}

function answered(terms: Terms, isRate: boolean, { clockUs, used }: Standing): Answered {
  return {
    limit: terms.limit,
    available: leftOf(terms, used),
    resetsAt: new Date(Math.ceil((isRate ? clockUs + used : clockUs) / 1_000)),
  }
}

export function granted(terms: Terms, isRate: boolean, standing: Standing): LimitGranted {
  const { limit, available, resetsAt } = answered(terms, isRate, standing)
  return { ok: true, limit, available, resetsAt }
}

export function refused(
  terms: Terms,
  isRate: boolean,
  standing: Standing,
  cost: number,
): LimitRefused {
  const { limit, available, resetsAt } = answered(terms, isRate, standing)
  const retryAt = retryOf(terms, isRate, standing, cost)
  return { ok: false, reason: 'insufficient', limit, available, resetsAt, retryAt }
}

function retryOf(
  { most, unit }: Terms,
  isRate: boolean,
  { clockUs, used }: Standing,
  cost: number,
): Date | undefined {
  if (cost > most / unit) return undefined
  const us = isRate ? clockUs + Math.max(0, used + cost * unit - most) : clockUs
  return new Date(Math.ceil(us / 1_000))
}

/** What the statement said about one key. */
export interface KeyAnswer extends Standing {
  readonly ok: boolean
}

/** By the place of the key in the statement; nothing of those that were not decided. */
export function answersIn(text: unknown, count: number): (KeyAnswer | undefined)[] {
  const answers = Array.from<KeyAnswer | undefined>({ length: count })
  const numbers = JSON.parse(String(text)) as number[]
  const clockUs = numbers[0] as number
  let at = 1
  for (; at < numbers.length && numbers[at] !== 0; at += 2) {
    const number = numbers[at] as number
    const used = numbers[at + 1] as number
    answers[Math.abs(number) - 1] = { ok: number > 0, clockUs, used }
  }
  // Rows of another window than most.
  for (at += 1; at < numbers.length; at += 2) {
    const place = (numbers[at] as number) - 1
    const answer = answers[place]
    if (answer !== undefined) answers[place] = { ...answer, clockUs: numbers[at + 1] as number }
  }
  return answers
}
