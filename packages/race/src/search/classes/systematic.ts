/** One run of every class: the reversals of what was run, until none is left. */
import { type Dependent, dependent as everyRule } from '../../core/footprint.ts'
import type { Progress, Run, Runner } from '../../core/model.ts'
import { Frontier, type Learnt } from './frontier.ts'
import { Follow, type Planned, stay } from '../policy.ts'
import { Tally } from '../tally.ts'

/** A run of the search, and what went otherwise than planned. */
export interface Visit extends Learnt {
  readonly divergence: string | undefined
}

/**
 * Which of two waiting sessions gets an updated row is decided inside PostgreSQL, so a plan that expects
 * one of them may have to be tried again.
 */
const TRIES = 4

/** Runs what the frontier holds, easiest first, until it is empty or `stop` says so. */
export async function* systematic(
  tally: Tally,
  frontier: Frontier,
  stop: () => boolean,
  phase: Progress['phase'] = 'search',
): AsyncGenerator<Visit, void> {
  if (frontier.classes === 0) yield await visit(tally, frontier, [], phase)
  while (!stop()) {
    tally.bound = frontier.bound
    const plan = frontier.next()
    if (plan === undefined) break
    for (let tries = 1; ; tries++) {
      const visited = await visit(tally, frontier, plan, phase)
      const last = visited.divergence === undefined || tries === TRIES || stop()
      yield last ? visited : { ...visited, divergence: undefined }
      if (last) break
    }
  }
}

async function visit(
  tally: Tally,
  frontier: Frontier,
  plan: readonly Planned[],
  phase: Progress['phase'],
): Promise<Visit> {
  const follow = new Follow(plan, stay)
  const run = await tally.run(follow.decide, phase)
  const learnt = frontier.learn(run)
  tally.classes = frontier.classes
  tally.open = frontier.open
  return { ...learnt, divergence: follow.divergence }
}

/** What an enumeration covered. */
export interface Enumeration {
  /** Nothing was left to run, nothing went wrong and nothing went otherwise than planned. */
  readonly exhaustive: boolean
  readonly schedules: number
  readonly classes: number
  readonly divergences: readonly string[]
}

/** Every run of an exhaustive search, judged by nobody; returns what it covered. */
export async function* enumerate(
  runner: Runner,
  options: { schedules?: number; ms?: number; dependent?: Dependent } = {},
): AsyncGenerator<Run, Enumeration> {
  const { schedules = 2_000, ms = 60_000, dependent = everyRule } = options
  const tally = new Tally(runner, { schedules, ms })
  const frontier = new Frontier(dependent)
  const divergences: string[] = []
  for await (const { trace, divergence } of systematic(tally, frontier, () => tally.spent())) {
    if (divergence !== undefined) divergences.push(divergence)
    yield trace.run
  }
  return {
    exhaustive: frontier.open === 0 && divergences.length === 0 && tally.troubled === 0,
    schedules: tally.schedules,
    classes: frontier.classes,
    divergences,
  }
}
