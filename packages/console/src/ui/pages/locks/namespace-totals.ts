import type { LockMinute, Percentiles } from 'holdfast/observe'

/** The use of one namespace over a time span. */
export interface NamespaceTotal {
  readonly namespace: string
  readonly acquired: number
  readonly timeouts: number
  readonly busy: number
  /** Of the worst minute: percentiles of minutes cannot be added up. */
  readonly wait: Percentiles
  readonly hold: Percentiles
  readonly minutes: readonly LockMinute[]
}

/** One row per namespace: those with timeouts first, then the busiest. */
export function totals(minutes: readonly LockMinute[]): readonly NamespaceTotal[] {
  const sum = (all: readonly LockMinute[], of: 'acquired' | 'timeouts' | 'busy'): number =>
    all.reduce((total, minute) => total + minute[of], 0)
  return [...Map.groupBy(minutes, ({ namespace }) => namespace)]
    .map(([namespace, all]) => ({
      namespace,
      acquired: sum(all, 'acquired'),
      timeouts: sum(all, 'timeouts'),
      busy: sum(all, 'busy'),
      wait: worst(all.map(({ wait }) => wait)),
      hold: worst(all.map(({ hold }) => hold)),
      minutes: all,
    }))
    .toSorted((a, b) => b.timeouts - a.timeouts || b.acquired - a.acquired)
}

function worst(all: readonly Percentiles[]): Percentiles {
  const most = (of: 'p50' | 'p95' | 'p99' | 'max'): { readonly [of: string]: number } => {
    const values = all.map((one) => one[of]).filter((value) => value !== undefined)
    return values.length === 0 ? {} : { [of]: Math.max(...values) }
  }
  return {
    count: all.reduce((total, one) => total + one.count, 0),
    ...most('p50'),
    ...most('p95'),
    ...most('p99'),
    ...most('max'),
  }
}

/**
 * Every minute from the first to the last, also those in which nothing was counted. The one that is not over
 * yet is left out, because it would look like a fall.
 */
export function everyMinute(
  minutes: readonly LockMinute[],
  now: number,
): readonly { readonly minute: string; readonly use: LockMinute | undefined }[] {
  const over = minutes.filter(({ minute }) => Date.parse(minute) + 60_000 <= now)
  const shown = over.length === 0 ? minutes : over
  const byMinute = new Map(shown.map((use) => [Date.parse(use.minute), use]))
  const instants = [...byMinute.keys()]
  const [from, to] = [Math.min(...instants), Math.max(...instants)]
  return Array.from({ length: Math.round((to - from) / 60_000) + 1 }, (_, at) => {
    const instant = from + at * 60_000
    return { minute: new Date(instant).toISOString(), use: byMinute.get(instant) }
  })
}
