import { hash } from 'node:crypto'
import type { Missed } from './options.ts'
import type { Rule } from './rule.ts'

/** What of a rule concerns us at one moment of the database's clock. */
export interface DueTicks {
  /** To be run, oldest first. */
  readonly run: readonly number[]
  /** Due, and to be passed over: the latest of them, and how many there are, up to a thousand. */
  readonly passed: { readonly atMs: number; readonly count: number } | undefined
  /** When the next one is due. */
  readonly nextMs: number | undefined
}

export interface Policy {
  readonly name: string
  readonly rule: Rule
  readonly missed: Missed
  readonly graceMs: number
  readonly jitterMs: number
}

/** More are not counted. */
const mostCounted = 1_000

/**
 * The ticks after `lastMs` that are due at `nowMs`. Everybody who is given the same two moments comes
 * to the same result.
 */
export function dueTicks(policy: Policy, lastMs: number, nowMs: number): DueTicks {
  const { rule, missed, graceMs } = policy
  const dueAt = (tickMs: number): number => tickMs + delayMs(policy, tickMs)
  const bound = typeof missed === 'object' ? missed.all : 1
  // Usually there is one at most; all are counted only when there are more than are wanted.
  let found = since(rule.latest(nowMs, bound + 2), lastMs)
  if (found.length > bound + 1) found = since(rule.latest(nowMs, bound + mostCounted), lastMs)
  const youngest = found.at(-1)
  const delayed = youngest !== undefined && dueAt(youngest) > nowMs ? youngest : undefined
  const due = delayed === undefined ? found : found.slice(0, -1)
  const wanted = due
    .slice(-bound)
    .filter((tickMs) => missed !== 'skip' || nowMs - dueAt(tickMs) <= graceMs)
  const passed = due.length - wanted.length
  const next = delayed ?? rule.next(nowMs)
  return {
    run: wanted,
    passed: passed === 0 ? undefined : { atMs: due[passed - 1] as number, count: passed },
    nextMs: next === undefined ? undefined : dueAt(next),
  }
}

function since(ticks: readonly number[], lastMs: number): number[] {
  return ticks.filter((tickMs) => tickMs > lastMs)
}

/**
 * The same delay in every process, so that the tick is not simply taken by whoever drew the shortest.
 * Never as long as the gap to the next tick: ticks keep their order.
 */
function delayMs({ name, rule, jitterMs }: Policy, tickMs: number): number {
  if (jitterMs === 0) return 0
  const gapMs = (rule.next(tickMs) ?? Number.POSITIVE_INFINITY) - tickMs
  const dice = Number.parseInt(hash('sha256', `${name}:${tickMs}`).slice(0, 12), 16) / 2 ** 48
  return Math.floor(dice * Math.min(jitterMs, gapMs))
}
