import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { quantile, type Summary, summarise } from './summary.ts'

interface Scene {
  readonly label: string
  /** Sets the scene for a slice, outside the measured time; returns what clears it again. */
  scene?(): Promise<() => Promise<void>>
}

/** One of the two things compared: operations that we repeat, or something that measures itself. */
export type Side =
  | (Scene & {
      /** One operation, as worker number `worker`. */
      operation(worker: number): Promise<unknown>
    })
  | (Scene & {
      /** Runs for about so long and gives operations per second. */
      measure(sliceMs: number): Promise<number>
    })

/** What a ratio is to reach, if it was promised. */
export interface Bar {
  readonly bar?: number
  /** A ratio of costs is to stay below its bar. @defaultValue 'at least' */
  readonly barIs?: 'at least' | 'at most'
}

export interface Contest extends Bar {
  /** Name of the ratio `measured / baseline`. */
  readonly name: string
  readonly measured: Side
  readonly baseline: Side
  /** How many operations are under way at any time. */
  readonly workers: number
}

export interface Effort {
  readonly rounds: number
  /** One round is a slice of each side. */
  readonly sliceMs: number
  /** On a machine so busy that the rounds take longer than this, there are fewer of them. */
  readonly limitMs?: number
  /** Slices of each side that are not counted. @defaultValue 2 */
  readonly warmUps?: number
}

export interface Comparison extends Bar {
  readonly name: string
  readonly ratio: Summary
  /** The middle of all rounds of each side, as text with its unit. */
  readonly sides: readonly { readonly value: string; readonly label: string }[]
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
  effort: Effort,
  progress: (text: string) => void,
): Promise<Comparison> {
  const { measured, baseline } = await rounds(contest, effort, progress)
  return comparisonOf(contest, '/s', measured, baseline)
}

/**
 * The same, and from the same slices how many operations a second of a processor is good for: on a machine
 * whose processors are all busy the one follows from the other, but a neighbour that takes them away for a
 * while changes only the first. `processorSeconds` counts everybody who takes part.
 */
export async function compareWithProcessor(
  contest: Contest,
  effort: Effort,
  progress: (text: string) => void,
  processorSeconds: () => number,
): Promise<readonly [Comparison, Comparison]> {
  const spent: Record<'measured' | 'baseline', number[]> = { measured: [], baseline: [] }
  const { measured, baseline } = await rounds(contest, effort, progress, {
    before: processorSeconds,
    after: (which, before, operations) =>
      spent[which].push(operations / (processorSeconds() - before)),
  })
  return [
    comparisonOf(contest, '/s', measured, baseline),
    comparisonOf(
      { ...contest, name: `${contest.name}_processor` },
      'per processor second',
      spent.measured,
      spent.baseline,
    ),
  ]
}

interface Meter {
  before(): number
  after(which: 'measured' | 'baseline', before: number, operations: number): void
}

/** Operations per second of each side, round by round. */
async function rounds(
  contest: Contest,
  { rounds: count, sliceMs, limitMs = Number.POSITIVE_INFINITY, warmUps = 2 }: Effort,
  progress: (text: string) => void,
  meter?: Meter,
): Promise<{ readonly measured: number[]; readonly baseline: number[] }> {
  const { measured, baseline, workers } = contest
  const until = performance.now() + limitMs
  // Code that is not yet compiled, cold plans and empty pools are not what we measure.
  for (let warmUp = 0; warmUp < warmUps; warmUp += 1) {
    for (const side of [measured, baseline]) await rate(side, workers, sliceMs)
  }

  const rates = { measured: [] as number[], baseline: [] as number[] }
  for (let round = 0; round < count && (round < fewest || performance.now() < until); round += 1) {
    const order =
      round % 2 === 0 ? (['measured', 'baseline'] as const) : (['baseline', 'measured'] as const)
    for (const which of order) {
      rates[which].push(await rate(contest[which], workers, sliceMs, meter && { ...meter, which }))
    }
    if ((round + 1) % Math.ceil(count / 4) === 0) {
      progress(`${contest.name}: round ${round + 1} of ${count}`)
    }
  }
  return rates
}

function comparisonOf(
  contest: Contest,
  unit: string,
  measured: readonly number[],
  baseline: readonly number[],
): Comparison {
  const ratios = measured.map((value, round) => value / (baseline[round] ?? Number.NaN))
  const middle = (values: readonly number[]): string =>
    `${Math.round(quantile(values, 0.5))} ${unit}`
  return {
    ...barOf(contest),
    name: contest.name,
    ratio: summarise(ratios),
    sides: [
      { value: middle(measured), label: contest.measured.label },
      { value: middle(baseline), label: contest.baseline.label },
    ],
  }
}

/** The bar alone, of a contest that has more to it. */
export function barOf({ bar, barIs }: Bar): Bar {
  return { ...(bar === undefined ? {} : { bar }), ...(barIs === undefined ? {} : { barIs }) }
}

/** Operations per second of one slice. */
async function rate(
  side: Side,
  workers: number,
  sliceMs: number,
  meter?: Meter & { readonly which: 'measured' | 'baseline' },
): Promise<number> {
  const clear = await side.scene?.()
  // Neither side is to pay for what the other one left behind. Only the young generation: a full
  // collection also drops compiled code, and each slice would measure the compiler again.
  collectGarbage({ type: 'minor' })
  const before = meter?.before() ?? 0
  const began = performance.now()
  const perSecond =
    'measure' in side ? await side.measure(sliceMs) : await repeated(side, workers, sliceMs)
  meter?.after(meter.which, before, (perSecond * (performance.now() - began)) / 1_000)
  await clear?.()
  return perSecond
}

async function repeated(
  side: Extract<Side, { operation: unknown }>,
  workers: number,
  sliceMs: number,
): Promise<number> {
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
  return operations / ((performance.now() - began) / 1_000)
}

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as (options: { type: 'minor' }) => void
