import type { Row } from '../../core/driver.ts'
import { latencyBoundsMs } from '../../core/events.ts'
import type { LockMinute, LockTotal, Percentiles } from '../model.ts'

/** Reads what `latestMinutes` answers. */
export function lockMinutesFrom(rows: readonly Row[]): LockMinute[] {
  return rows.map((row) => {
    const histogram = (buckets: string, max: string): Percentiles =>
      withBuckets(JSON.parse(String(row[buckets])) as number[], Number(row[max]))
    return {
      minute: String(row['minute']),
      namespace: String(row['namespace']),
      acquired: Number(row['acquired']),
      timeouts: Number(row['timeouts']),
      busy: Number(row['busy']),
      wait: histogram('wait', 'waitMaxMs'),
      hold: histogram('hold', 'holdMaxMs'),
    }
  })
}

/**
 * One row per namespace. Buckets of minutes can be added up, and percentiles cannot: those of a total are those of all its
 * waits, and as exact as those of one minute.
 */
export function lockTotals(minutes: readonly LockMinute[]): LockTotal[] {
  const sum = (all: readonly LockMinute[], of: 'acquired' | 'timeouts' | 'busy'): number =>
    all.reduce((total, minute) => total + minute[of], 0)
  return [...Map.groupBy(minutes, ({ namespace }) => namespace)].map(([namespace, all]) => ({
    namespace,
    acquired: sum(all, 'acquired'),
    timeouts: sum(all, 'timeouts'),
    busy: sum(all, 'busy'),
    wait: merged(all.map(({ wait }) => wait)),
    hold: merged(all.map(({ hold }) => hold)),
  }))
}

function merged(all: readonly Percentiles[]): Percentiles {
  const sums = Array.from({ length: latencyBoundsMs.length + 1 }, (_, at) =>
    all.reduce((total, { buckets }) => total + (buckets?.[at] ?? 0), 0),
  )
  return withBuckets(sums, Math.max(0, ...all.map(({ max }) => max ?? 0)))
}

function withBuckets(buckets: readonly number[], maxMs: number): Percentiles {
  const percentiles = percentilesOf(buckets, maxMs)
  return percentiles.count === 0 ? percentiles : { ...percentiles, buckets }
}

/**
 * Percentiles out of counts: found in their bucket by drawing a straight line from its lower to its upper
 * bound, and never above the maximum, which is exact. So they are wrong by at most the width of a bucket.
 */
export function percentilesOf(buckets: readonly number[], maxMs: number): Percentiles {
  const count = buckets.reduce((sum, next) => sum + next, 0)
  if (count === 0) return { count }
  const at = (share: number): number => {
    const rank = share * count
    let before = 0
    for (const [index, inside] of buckets.entries()) {
      if (inside > 0 && before + inside >= rank) {
        const from = index === 0 ? 0 : (latencyBoundsMs[index - 1] as number)
        const to = Math.max(from, Math.min(latencyBoundsMs[index] ?? maxMs, maxMs))
        return from + ((rank - before) / inside) * (to - from)
      }
      before += inside
    }
    return maxMs
  }
  return { count, p50: at(0.5), p95: at(0.95), p99: at(0.99), max: maxMs }
}
