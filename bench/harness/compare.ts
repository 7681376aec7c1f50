import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type Cost, type Meter, startCost } from './meter.ts'
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
  /** What the ratio by processor time is to reach. */
  readonly barByCost?: number
  /** Also the client's processor time against the server's, of what is measured. */
  readonly clientVsServer?: Bar & { readonly name: string }
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
  /** Of a ratio by processor time. */
  readonly cost?: { readonly measured: Cost; readonly baseline: Cost }
}

/** Below this there is no spread to speak of. */
const fewest = 4

/**
 * Compares two sides in the same run: slices of both in turn, so that whatever else the machine
 * does hits both, and one ratio per round. Which side goes first alternates, so that neither always
 * inherits the other's caches or garbage.
 *
 * With a meter also by what an operation costs of a processor, from the same slices: the baseline's cost against the
 * measured one's, so that more is better as it is by time. A neighbour who takes processors away changes it least.
 */
export async function compare(
  contest: Contest,
  effort: Effort,
  progress: (text: string) => void,
  meter?: Meter,
): Promise<readonly Comparison[]> {
  const { measured, baseline } = await rounds(contest, effort, progress, meter)
  const rate = ({ perSecond }: Slice): number => perSecond
  const byTime = comparisonOf(contest, measured, baseline, rate, perSecond)
  if (meter === undefined) return [byTime]
  const { bar: _, barByCost, clientVsServer, ...rest } = contest
  const named = {
    ...rest,
    name: `${contest.name}_cpu`,
    ...(barByCost === undefined ? {} : { bar: barByCost }),
  }
  const costs = (slices: readonly Slice[]): Cost[] => slices.flatMap(({ cost }) => cost ?? [])
  const efficiency = ({ cost }: Slice): number => 1 / (cost?.total ?? Number.NaN)
  return [
    byTime,
    {
      ...comparisonOf(named, measured, baseline, efficiency, (slices) => costText(costs(slices))),
      cost: { measured: middleCost(costs(measured)), baseline: middleCost(costs(baseline)) },
    },
    ...(clientVsServer === undefined ? [] : [sharesOf(clientVsServer, costs(measured))]),
  ]
}

function sharesOf({ name, ...bar }: Bar & { readonly name: string }, costs: Cost[]): Comparison {
  const of = (part: string): number[] => costs.map(({ parts }) => parts[part] ?? Number.NaN)
  const [client, server] = [of('client'), of('server')]
  return {
    ...bar,
    name,
    ratio: summarise(client.map((each, at) => each / (server[at] as number))),
    sides: [
      { value: `${quantile(client, 0.5).toFixed(1)} µs`, label: 'of a processor, by the client' },
      { value: `${quantile(server, 0.5).toFixed(1)} µs`, label: 'by the server' },
    ],
  }
}

/** One slice of one side. */
interface Slice {
  readonly perSecond: number
  readonly cost: Cost | undefined
}

function perSecond(slices: readonly Slice[]): string {
  const rates = slices.map((slice) => slice.perSecond)
  return `${Math.round(quantile(rates, 0.5))} /s`
}

/** The medians, each by itself. */
function middleCost(costs: readonly Cost[]): Cost {
  const middle = (of: (cost: Cost) => number): number => quantile(costs.map(of), 0.5)
  const names = Object.keys(costs[0]?.parts ?? {})
  return {
    parts: Object.fromEntries(names.map((name) => [name, middle(({ parts }) => parts[name] ?? 0)])),
    total: middle(({ total }) => total),
    others: middle(({ others }) => others),
  }
}

function costText(costs: readonly Cost[]): string {
  const { parts, total, others } = middleCost(costs)
  const each = Object.entries(parts).map(([name, us]) => `${name} ${us.toFixed(1)}`)
  return `${total.toFixed(1)} µs (${each.join(', ')}; others ${Math.round(others * 100)} % of the machine)`
}

/** Slices of each side, round by round. */
async function rounds(
  contest: Contest,
  { rounds: count, sliceMs, limitMs = Number.POSITIVE_INFINITY, warmUps = 2 }: Effort,
  progress: (text: string) => void,
  meter: Meter | undefined,
): Promise<{ readonly measured: Slice[]; readonly baseline: Slice[] }> {
  const { measured, baseline, workers } = contest
  const until = performance.now() + limitMs
  // Code that is not yet compiled, cold plans and empty pools are not what we measure.
  for (let warmUp = 0; warmUp < warmUps; warmUp += 1) {
    for (const side of [measured, baseline]) await sliceOf(side, workers, sliceMs, undefined)
  }

  const slices = { measured: [] as Slice[], baseline: [] as Slice[] }
  let again = count
  for (let round = 0; round < count && (round < fewest || performance.now() < until); round += 1) {
    const order =
      round % 2 === 0 ? (['measured', 'baseline'] as const) : (['baseline', 'measured'] as const)
    for (const which of order) {
      let slice = await sliceOf(contest[which], workers, sliceMs, meter)
      while (isDisturbed(slice) && again > 0 && performance.now() < until) {
        again -= 1
        slice = calmer(slice, await sliceOf(contest[which], workers, sliceMs, meter))
      }
      slices[which].push(slice)
    }
    if ((round + 1) % Math.ceil(count / 4) === 0) {
      progress(`${contest.name}: round ${round + 1} of ${count}`)
    }
  }
  return slices
}

/** Of the machine: what others may use in a slice that counts, as long as there are others to be had. */
const calm = 0.1

function isDisturbed({ cost }: Slice): boolean {
  return cost !== undefined && cost.others > calm
}

function calmer(one: Slice, other: Slice): Slice {
  return (other.cost?.others ?? 0) < (one.cost?.others ?? 0) ? other : one
}

function comparisonOf(
  contest: Contest,
  measured: readonly Slice[],
  baseline: readonly Slice[],
  valueOf: (slice: Slice) => number,
  text: (slices: readonly Slice[]) => string,
): Comparison {
  const ratios = measured.map((slice, round) => {
    const other = baseline[round]
    return other === undefined ? Number.NaN : valueOf(slice) / valueOf(other)
  })
  return {
    ...barOf(contest),
    name: contest.name,
    ratio: summarise(ratios),
    sides: [
      { value: text(measured), label: contest.measured.label },
      { value: text(baseline), label: contest.baseline.label },
    ],
  }
}

/** The bar alone, of a contest that has more to it. */
export function barOf({ bar, barIs }: Bar): Bar {
  return { ...(bar === undefined ? {} : { bar }), ...(barIs === undefined ? {} : { barIs }) }
}

async function sliceOf(
  side: Side,
  workers: number,
  sliceMs: number,
  meter: Meter | undefined,
): Promise<Slice> {
  const clear = await side.scene?.()
  // Neither side is to pay for what the other one left behind. Only the young generation: a full
  // collection also drops compiled code, and each slice would measure the compiler again.
  collectGarbage({ type: 'minor' })
  const stop = meter && startCost(meter)
  const began = performance.now()
  const rate =
    'measure' in side ? await side.measure(sliceMs) : await repeated(side, workers, sliceMs)
  const cost = stop?.((rate * (performance.now() - began)) / 1_000)
  await clear?.()
  return { perSecond: rate, cost }
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
