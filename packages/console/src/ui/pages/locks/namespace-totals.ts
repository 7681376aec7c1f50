import type { LockMinute, LockTotal } from 'holdfast/observe'

/** Those with timeouts first, then the busiest. */
export function ranked(totals: readonly LockTotal[]): readonly LockTotal[] {
  return totals.toSorted((a, b) => b.timeouts - a.timeouts || b.acquired - a.acquired)
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
