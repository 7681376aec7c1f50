import type { Row } from '../../core/driver.ts'
import { latencyBoundsMs } from '../../core/events.ts'
import type { LockMinute, Percentiles } from '../model.ts'

/** Reads what `latestMinutes` answers. */
export function lockMinutesFrom(rows: readonly Row[]): LockMinute[] {
  return rows.map((row) => {
    const histogram = (buckets: string, max: string): Percentiles =>
      percentilesOf(JSON.parse(String(row[buckets])) as number[], Number(row[max]))
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
