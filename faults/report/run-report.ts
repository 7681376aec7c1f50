import type { HistoryEvent, Outcome, Seed, Violation } from '../core/model.ts'

export type OutcomeCounts = Readonly<Record<Outcome, number>>

/** What is kept of one episode. */
export interface EpisodeReport {
  readonly number: number
  readonly seed: Seed
  /** In the order in which they struck. */
  readonly faults: readonly string[]
  readonly seconds: number
  /** How long after the end of the faults every workload had made progress again. */
  readonly recoveredMs: number
  /** By workload. */
  readonly outcomes: Readonly<Record<string, OutcomeCounts>>
  readonly violations: readonly Violation[]
}

/** A run of many episodes. */
export interface RunReport {
  readonly tier: string
  readonly seed: Seed
  readonly startedAt: string
  readonly episodes: readonly EpisodeReport[]
  /** What a reader has to know: which faults were left out and why, which settings were used. */
  readonly notes: readonly string[]
}

export const outcomes: readonly Outcome[] = ['ok', 'refused', 'failed', 'unknown']

/** How operations ended, by workload. One without an end is unknown. */
export function outcomesOf(events: readonly HistoryEvent[]): Record<string, OutcomeCounts> {
  const counts: Record<string, Record<Outcome, number>> = {}
  for (const { workload, type } of events) {
    const of = (counts[workload] ??= { ok: 0, refused: 0, failed: 0, unknown: 0 })
    // Each begins as unknown, and stays so unless its end says otherwise.
    if (type === 'invoke') of.unknown += 1
    else if (type !== 'unknown') {
      of.unknown -= 1
      of[type] += 1
    }
  }
  return counts
}

/** A run in numbers. */
export interface Summary {
  readonly episodes: number
  readonly operations: number
  readonly violations: number
  readonly workloads: readonly { readonly name: string; readonly counts: OutcomeCounts }[]
  readonly faults: readonly {
    readonly name: string
    readonly struck: number
    readonly violations: number
  }[]
  readonly recoveredMs: { readonly median: number; readonly p99: number; readonly most: number }
  /** With 95 % confidence, violations are rarer than this share of episodes; nothing if there was one. */
  readonly rarerThan: number | undefined
}

export function summaryOf({ episodes }: RunReport): Summary {
  const workloads = new Map<string, Record<Outcome, number>>()
  const faults = new Map<string, { struck: number; violations: number }>()
  for (const episode of episodes) {
    for (const [name, counts] of Object.entries(episode.outcomes)) {
      const sum = workloads.get(name) ?? { ok: 0, refused: 0, failed: 0, unknown: 0 }
      for (const outcome of outcomes) sum[outcome] += counts[outcome]
      workloads.set(name, sum)
    }
    for (const name of episode.faults) {
      const sum = faults.get(name) ?? { struck: 0, violations: 0 }
      sum.struck += 1
      sum.violations += episode.violations.length
      faults.set(name, sum)
    }
  }
  const violations = episodes.reduce((sum, episode) => sum + episode.violations.length, 0)
  const recovered = episodes.map(({ recoveredMs }) => recoveredMs).toSorted((a, b) => a - b)
  const share = (part: number): number => recovered[Math.floor((recovered.length - 1) * part)] ?? 0
  const totals = [...workloads].map(([name, counts]) => ({ name, counts }))
  return {
    episodes: episodes.length,
    operations: totals.reduce(
      (sum, { counts }) => sum + outcomes.reduce((all, outcome) => all + counts[outcome], 0),
      0,
    ),
    violations,
    workloads: totals,
    faults: [...faults]
      .map(([name, counts]) => ({ name, ...counts }))
      .toSorted((a, b) => b.struck - a.struck || a.name.localeCompare(b.name)),
    recoveredMs: { median: share(0.5), p99: share(0.99), most: recovered.at(-1) ?? 0 },
    rarerThan: violations > 0 || episodes.length === 0 ? undefined : ruleOfThree(episodes.length),
  }
}

/** The rate at which nothing in `runs` would have been seen with a chance of 5 %: about 3 / n. */
function ruleOfThree(runs: number): number {
  return 1 - 0.05 ** (1 / runs)
}

/** What to type to see an episode again. */
export function commandFor({ tier }: RunReport, { seed }: EpisodeReport): string {
  return `npm run faults -- --tier ${tier} --episode-seed ${seed}`
}
