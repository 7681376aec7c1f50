import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { quantile, type Summary, summarise } from './summary.ts'

/** One of the two things compared. */
export interface Side {
  readonly label: string
  /** One operation, as worker number `worker`. */
  operation(worker: number): Promise<unknown>
  /** Sets the scene for a slice, outside the measured time; returns what clears it again. */
  scene?(): Promise<() => Promise<void>>
}

export interface Contest {
  /** Name of the ratio `measured / baseline`. */
  readonly name: string
  readonly measured: Side
  readonly baseline: Side
  /** How many operations are under way at any time. */
  readonly workers: number
  /** What the ratio is to reach, if it was promised. */
  readonly bar?: number
}

export interface Effort {
  readonly rounds: number
  /** One round is a slice of each side. */
  readonly sliceMs: number
  /** On a machine so busy that the rounds take longer than this, there are fewer of them. */
  readonly limitMs?: number
}

export interface Comparison {
  readonly contest: Contest
  readonly ratio: Summary
  /** Operations per second, the middle of all rounds. */
  readonly rates: { readonly measured: number; readonly baseline: number }
}

/** Below this there is no spread to speak of. */
const fewest = 4

/**
 * Compares two sides in the same run: slices of both in turn, so that whatever else the machine
 * does hits both, and one ratio per round. Which side goes first alternates, so that neither always
 * inherits the other's caches or garbage.
 */
export async function compare(
  contest: Contest,
  { rounds, sliceMs, limitMs = Number.POSITIVE_INFINITY }: Effort,
  progress: (text: string) => void,
): Promise<Comparison> {
  const { measured, baseline, workers } = contest
  const until = performance.now() + limitMs
  // Code that is not yet compiled, cold plans and empty pools are not what we measure.
  for (const side of [measured, baseline, measured, baseline]) await rate(side, workers, sliceMs)

  const rates = { measured: [] as number[], baseline: [] as number[] }
  for (let round = 0; round < rounds && (round < fewest || performance.now() < until); round += 1) {
    const order =
      round % 2 === 0 ? (['measured', 'baseline'] as const) : (['baseline', 'measured'] as const)
    for (const which of order) {
      rates[which].push(await rate(contest[which], workers, sliceMs))
    }
    if ((round + 1) % Math.ceil(rounds / 4) === 0) {
      progress(`${contest.name}: round ${round + 1} of ${rounds}`)
    }
  }
  const ratios = rates.measured.map((value, round) => value / (rates.baseline[round] ?? Number.NaN))
  return {
    contest,
    ratio: summarise(ratios),
    rates: { measured: quantile(rates.measured, 0.5), baseline: quantile(rates.baseline, 0.5) },
  }
}

/** Operations per second of one slice. */
async function rate(side: Side, workers: number, sliceMs: number): Promise<number> {
  const clear = await side.scene?.()
  // Neither side is to pay for what the other one left behind. Only the young generation: a full
  // collection also drops compiled code, and each slice would measure the compiler again.
  collectGarbage({ type: 'minor' })
  let operations = 0
  const began = performance.now()
  const until = began + sliceMs
  const work = async (worker: number): Promise<void> => {
    while (performance.now() < until) {
      await side.operation(worker)
      operations += 1
    }
  }
  await Promise.all(Array.from({ length: workers }, (_, worker) => work(worker)))
  const seconds = (performance.now() - began) / 1_000
  await clear?.()
  return operations / seconds
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as (options: { type: 'minor' }) => void
