import { quantile } from '../harness/summary.ts'

/** One wait for a server connection and the work on it, by the machine's monotonic clock. */
export interface Visit {
  readonly client: number
  readonly askedUs: number
  readonly endedUs: number
}

/**
 * How equally visits were given. A wait is measured in rounds: how many visits ended meanwhile, against the
 * number of clients. In a fair queue that is about one, however fast or slow the machine is.
 */
export interface Fairness {
  /** Of the clients' mean waits in rounds, by Jain: 1 if all waited alike. */
  readonly jain: number
  readonly leastVisits: number
  readonly middleVisits: number
  readonly rounds: { readonly middle: number; readonly most: number }
  readonly waitMs: { readonly middle: number; readonly p99: number; readonly most: number }
}

/** Within these nobody is starved. */
const fairEnough = {
  jain: 0.95,
  /** The longest wait of anybody, in rounds. */
  mostRounds: 2.5,
  /** The longest wait of anybody against the one in the middle, in time. */
  mostToMiddle: 6,
} as const

/**
 * The first visit of everybody is left out, since all asked for it at once and waited between nothing and a
 * round; so are visits that ended when others had left already, at `untilUs`.
 */
export function fairnessOf(all: readonly Visit[], clients: number, untilUs: number): Fairness {
  const seen = new Set<number>()
  const visits = all.filter(({ client, endedUs }) => {
    const first = !seen.has(client)
    seen.add(client)
    return !first && endedUs <= untilUs
  })
  const ends = Float64Array.from(all, ({ endedUs }) => endedUs).sort()
  const rounds = visits.map(
    ({ askedUs, endedUs }) => (below(ends, endedUs) - below(ends, askedUs)) / clients,
  )
  const counts = Array.from({ length: clients }, () => 0)
  const sums = Array.from({ length: clients }, () => 0)
  for (const [at, { client }] of visits.entries()) {
    counts[client] = (counts[client] ?? 0) + 1
    sums[client] = (sums[client] ?? 0) + (rounds[at] ?? 0)
  }
  const waits = visits.map(({ askedUs, endedUs }) => (endedUs - askedUs) / 1_000)
  return {
    jain: jainIndex(sums.flatMap((sum, at) => (counts[at] === 0 ? [] : [sum / (counts[at] ?? 1)]))),
    leastVisits: quantile(counts, 0),
    middleVisits: quantile(counts, 0.5),
    rounds: { middle: quantile(rounds, 0.5), most: quantile(rounds, 1) },
    waitMs: { middle: quantile(waits, 0.5), p99: quantile(waits, 0.99), most: quantile(waits, 1) },
  }
}

function jainIndex(values: readonly number[]): number {
  const sum = values.reduce((total, value) => total + value, 0)
  return sum ** 2 / (values.length * values.reduce((total, value) => total + value ** 2, 0))
}

/** What is not fair about it, one sentence each. */
export function unfair({ jain, leastVisits, waitMs, rounds }: Fairness): string[] {
  const ratio = waitMs.most / waitMs.middle
  return [
    ...(leastVisits === 0 ? ['a client had no visit but its first'] : []),
    ...(jain < fairEnough.jain
      ? [`clients wait unequally: ${jain.toFixed(3)} by Jain's index, less than ${fairEnough.jain}`]
      : []),
    ...(rounds.most > fairEnough.mostRounds
      ? [`a client waited for ${rounds.most.toFixed(1)} rounds of all others`]
      : []),
    ...(ratio > fairEnough.mostToMiddle
      ? [`the longest wait was ${ratio.toFixed(1)} times the one in the middle`]
      : []),
  ]
}

/** How many are below `value`. */
function below(sorted: Float64Array, value: number): number {
  let [low, high] = [0, sorted.length]
  while (low < high) {
    const middle = (low + high) >>> 1
    if ((sorted[middle] as number) < value) low = middle + 1
    else high = middle
  }
  return low
}
