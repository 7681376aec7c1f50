import { type Bar, barOf, type Comparison } from './compare.ts'
import { quantile, summarise } from './summary.ts'

/** One caller that does one thing after the other. */
export interface Caller {
  readonly label: string
  call(): Promise<unknown>
  /** Seconds of a processor that were used for it so far, if somebody wants to know. */
  seconds?(): number
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

/** What a caller took, one number per round. */
export interface Turns {
  /** Median latencies in milliseconds. */
  readonly medians: readonly number[]
  /** Microseconds of a processor for one call; none of a caller that does not count them. */
  readonly micros: readonly number[]
}

/**
 * Lets callers take turns call by call, the first one changing every time, so that whatever the
 * machine does in between hits all of them. Only one call is under way at any time.
 */
export async function latenciesOf(
  callers: readonly Caller[],
  effort: LatencyEffort,
): Promise<Latencies> {
  return (await turnsOf(callers, effort)).map(({ medians }) => medians)
}

/** The same, with what the calls cost of a processor. */
export async function turnsOf(
  callers: readonly Caller[],
  { rounds, calls, limitMs }: LatencyEffort,
): Promise<readonly Turns[]> {
  const turns = callers.map(() => ({ medians: [] as number[], micros: [] as number[] }))
  const roundMs = limitMs / (rounds + 1)
  // The first round warms up and is not counted.
  for (let round = 0; round <= rounds; round += 1) {
    const samples: number[][] = callers.map(() => [])
    const before = callers.map((caller) => caller.seconds?.())
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
    samples.forEach((values, at) => {
      turns[at]?.medians.push(quantile(values, 0.5))
      const [from, to] = [before[at], callers[at]?.seconds?.()]
      if (from !== undefined && to !== undefined)
        turns[at]?.micros.push(((to - from) * 1e6) / values.length)
    })
  }
  return turns
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
