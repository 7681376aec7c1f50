import { type Bar, barOf, type Comparison } from './compare.ts'
import { quantile, summarise } from './summary.ts'

/** One caller that does one thing after the other. */
export interface Caller {
  readonly label: string
  call(): Promise<unknown>
}

export interface LatencyEffort {
  readonly rounds: number
  /** Calls of each caller in a round. */
  readonly calls: number
  /** Where calls take so long that all of it would take longer, there are fewer of them. */
  readonly limitMs: number
}

/** Calls without which a round has no median to speak of. */
const fewest = 8

/** Median latencies in milliseconds, one per round, in the order of the callers. */
export type Latencies = readonly (readonly number[])[]

/**
 * Lets callers take turns call by call, the first one changing every time, so that whatever the
 * machine does in between hits all of them. Only one call is under way at any time.
 */
export async function latenciesOf(
  callers: readonly Caller[],
  { rounds, calls, limitMs }: LatencyEffort,
): Promise<Latencies> {
  const medians: number[][] = callers.map(() => [])
  const roundMs = limitMs / (rounds + 1)
  // The first round warms up and is not counted.
  for (let round = 0; round <= rounds; round += 1) {
    const samples: number[][] = callers.map(() => [])
    const until = performance.now() + roundMs
    for (let call = 0; call < calls && (call < fewest || performance.now() < until); call += 1) {
      for (let turn = 0; turn < callers.length; turn += 1) {
        const at = (turn + call) % callers.length
        const began = performance.now()
        await callers[at]?.call()
        samples[at]?.push(performance.now() - began)
      }
    }
    if (round === 0) continue
    samples.forEach((values, at) => medians[at]?.push(quantile(values, 0.5)))
  }
  return medians
}

/** The ratio of two callers' median latencies, one per round: more than 1 means slower. */
export function latencyRatio(
  contest: Bar & { readonly name: string },
  measured: { readonly label: string; readonly medians: readonly number[] },
  baseline: { readonly label: string; readonly medians: readonly number[] },
): Comparison {
  const ratios = measured.medians.map((ms, round) => ms / (baseline.medians[round] ?? Number.NaN))
  return {
    ...barOf(contest),
    name: contest.name,
    ratio: summarise(ratios),
    sides: [measured, baseline].map(({ label, medians }) => ({
      value: `${quantile(medians, 0.5).toFixed(3)} ms`,
      label,
    })),
  }
}
