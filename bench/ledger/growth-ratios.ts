import type { FactTable } from '../harness/bench-scenario.ts'
import type { Comparison } from '../harness/compare.ts'
import { latencyRatio, type Turns } from '../harness/compare-latency.ts'
import { quantile, summarise } from '../harness/summary.ts'
import { named } from './growth-chart.ts'

const bar = 1.1

/** The largest against the smallest, by time and by processor time. */
export function growthRatios(
  sizes: readonly number[],
  turns: readonly Turns[],
  suffix: string,
  hasBar: boolean,
): Comparison[] {
  const [least, most] = [sizes[0] ?? 0, sizes.at(-1) ?? 0]
  const name = `${named(most)}_vs_${named(least)}${suffix}`
  const side = (size: number, of: Turns | undefined) => ({
    label: `${size.toLocaleString('en')} movements`,
    ...(of ?? { medians: [], micros: [] }),
  })
  return ratiosOf(name, side(most, turns.at(-1)), side(least, turns[0]), hasBar)
}

export function kindRatios(
  random: Turns | undefined,
  ordered: Turns | undefined,
  at: string,
): Comparison[] {
  const none: Turns = { medians: [], micros: [] }
  return ratiosOf(
    `uuid7_vs_random_${at}`,
    { label: 'time-ordered ids', ...(ordered ?? none) },
    { label: 'random ids', ...(random ?? none) },
    false,
  )
}

type Labelled = Turns & { readonly label: string }

function ratiosOf(
  name: string,
  measured: Labelled,
  baseline: Labelled,
  hasBar: boolean,
): Comparison[] {
  const byTime = latencyRatio(
    { name: `latency_${name}`, ...(hasBar ? { bar, barIs: 'at most' as const } : {}) },
    measured,
    baseline,
  )
  if (measured.micros.length === 0) return [byTime]
  const ratios = measured.micros.map((each, round) => each / (baseline.micros[round] ?? Number.NaN))
  return [
    byTime,
    {
      name: `cpu_${name}`,
      ratio: summarise(ratios),
      sides: [measured, baseline].map(({ label, micros }) => ({
        value: `${quantile(micros, 0.5).toFixed(1)} µs`,
        label,
      })),
    },
  ]
}

export function growthTable(
  name: string,
  sizes: readonly number[],
  turns: readonly Turns[],
): FactTable {
  return {
    title: `${name}: median latency of rounds in ms, and µs of a processor of the server for one operation, by history`,
    columns: ['movements', 'median', 'p10', 'p90', 'µs', 'p10', 'p90'],
    rows: sizes.map((size, at) => {
      const { medians = [], micros = [] } = turns[at] ?? {}
      const latency = summarise(medians)
      const cost = micros.length === 0 ? undefined : summarise(micros)
      return [
        size.toLocaleString('en'),
        ...[latency.median, latency.p10, latency.p90].map((value) => value.toFixed(3)),
        ...[cost?.median, cost?.p10, cost?.p90].map((value) => value?.toFixed(0) ?? ''),
      ]
    }),
  }
}
