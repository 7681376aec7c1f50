import fc from 'fast-check'
import { expect, test } from 'vitest'
import { latencyBoundsMs } from '../../../src/core/events.ts'
import { percentilesOf } from '../../../src/observe/locks/lock-minutes.ts'

/** Counts of lengths in buckets, as a recorder makes them. */
function bucketsOf(lengths: readonly number[]): number[] {
  const buckets = Array.from({ length: latencyBoundsMs.length + 1 }, () => 0)
  for (const length of lengths) {
    const at = latencyBoundsMs.findIndex((bound) => length <= bound)
    const index = at === -1 ? latencyBoundsMs.length : at
    buckets[index] = (buckets[index] ?? 0) + 1
  }
  return buckets
}

test('nothing was counted: there is nothing to tell', () => {
  expect(percentilesOf(bucketsOf([]), 0)).toEqual({ count: 0 })
})

test('a percentile is in the bucket of the true one, and none is above the maximum', () => {
  const lengths = fc.array(fc.double({ min: 0.01, max: 30_000, noNaN: true }), {
    minLength: 1,
    maxLength: 300,
  })
  fc.assert(
    fc.property(lengths, (all) => {
      const max = Math.max(...all)
      const { count, p50, p95, p99 } = percentilesOf(bucketsOf(all), max)
      const sorted = all.toSorted((a, b) => a - b)
      expect(count).toBe(all.length)
      for (const [share, told] of [
        [0.5, p50],
        [0.95, p95],
        [0.99, p99],
      ] as const) {
        const exact = sorted[Math.ceil(share * count) - 1] as number
        const at = latencyBoundsMs.findIndex((bound) => exact <= bound)
        const [from, to] = [
          latencyBoundsMs[at - 1] ?? (at === 0 ? 0 : 10_000),
          latencyBoundsMs[at] ?? max,
        ]
        expect(told).toBeGreaterThanOrEqual(from)
        expect(told).toBeLessThanOrEqual(Math.min(to, max))
      }
    }),
  )
})
