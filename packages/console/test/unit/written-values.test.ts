import { type LockMinute, lockTotals } from 'holdfast/observe'
import { expect, test } from 'vitest'
import {
  amount,
  duration,
  length,
  mode,
  plural,
  shorten,
  shortLength,
  signed,
} from '../../src/ui/format.ts'
import { everyMinute, ranked } from '../../src/ui/pages/locks/namespace-totals.ts'
import { niceTicks, timeTicks } from '../../src/ui/parts/chart/scale.ts'

test.each([
  [0, '0.0 s', '0.0 s'],
  [-40, '0.0 s', '0.0 s'],
  [9_940, '9.9 s', '9.9 s'],
  [59_999, '59 s', '59 s'],
  [65_000, '1 min 05 s', '1m 05s'],
  [3_600_000 + 61_000, '1 h 01 min', '1h 01m'],
  [90_000_000, '1 d 1 h', '1d 1h'],
])('a length of %i ms', (ms, long, short) => {
  expect(length(ms)).toBe(long)
  expect(shortLength(ms)).toBe(short)
})

test('a measurement keeps what matters of it', () => {
  expect([undefined, 0.24, 1, 9.96, 12.4, 1250].map(duration)).toEqual([
    '–',
    '0.2 ms',
    '1 ms',
    '10 ms',
    '12 ms',
    '1.3 s',
  ])
})

test('amounts beyond what a number can be are exact', () => {
  expect(amount('9007199254740993')).toBe('9,007,199,254,740,993')
  expect(amount('not a number')).toBe('not a number')
  expect(['0', '12', '-1200'].map(signed)).toEqual(['', '+12', '-1,200'])
})

test('words', () => {
  expect(mode('AccessExclusiveLock')).toBe('access exclusive')
  expect(plural(1, 'session')).toBe('1 session')
  expect(plural(0, 'session')).toBe('0 sessions')
  expect(shorten('cart:7', 6)).toBe('cart:7')
  expect(shorten('cart:17', 6)).toBe('cart:…')
})

test('values on an axis are round, cover everything, and are no finer than asked', () => {
  expect(niceTicks(0, 0, 1)).toEqual([0, 1])
  expect(niceTicks(0, 2, 1)).toEqual([0, 1, 2])
  expect(niceTicks(0, 692, 0.1)).toEqual([0, 200, 400, 600, 800])
  expect(niceTicks(-30, 70, 1)).toEqual([-50, -25, 0, 25, 50, 75])
  const zoomed = niceTicks(37_950, 38_001, 1)
  expect(zoomed[0]).toBeLessThanOrEqual(37_950)
  expect(zoomed.at(-1)).toBeGreaterThanOrEqual(38_001)
})

test('times on an axis are few and within it', () => {
  const from = Date.parse('2026-11-15T10:00:30Z')
  const to = from + 3_600_000
  const ticks = timeTicks(from, to, 6)
  expect(ticks.length).toBeGreaterThan(1)
  expect(ticks.length).toBeLessThanOrEqual(7)
  for (const tick of ticks) expect(tick >= from && tick <= to && tick % 60_000 === 0).toBe(true)
})

function minute(at: number, namespace: string, more: Partial<LockMinute> = {}): LockMinute {
  return {
    minute: new Date(Date.parse('2026-11-15T10:00:00Z') + at * 60_000).toISOString(),
    namespace,
    acquired: 10,
    timeouts: 0,
    busy: 0,
    wait: { count: 10, p95: 5 },
    hold: { count: 0 },
    ...more,
  }
}

test('percentiles of a time span are those of all its waits, and namespaces with timeouts come first', () => {
  const of = (counts: Readonly<Record<number, number>>, max: number): LockMinute['wait'] => {
    const buckets = Array.from({ length: 14 }, (_, at) => counts[at] ?? 0)
    return { count: buckets.reduce((sum, one) => sum + one, 0), buckets, max }
  }
  const rows = ranked(
    lockTotals([
      minute(0, 'cart', { acquired: 100 }),
      // 990 waits of at most 1 ms, and in another minute 10 of about 80: one of a hundred waits is long.
      minute(0, 'order', { wait: of({ 0: 990 }, 1) }),
      minute(1, 'order', { timeouts: 2, wait: of({ 6: 10 }, 80) }),
    ]),
  )
  expect(rows.map(({ namespace }) => namespace)).toEqual(['order', 'cart'])
  expect(rows[0]).toMatchObject({ acquired: 20, timeouts: 2, wait: { count: 1000, max: 80 } })
  expect(rows[0]?.wait.p95).toBeLessThanOrEqual(1)
  expect(rows[0]?.wait.p99).toBeLessThanOrEqual(1)
  expect(rows[0]?.hold).toEqual({ count: 0 })
})

test('minutes in which nothing was counted are there as gaps', () => {
  const counted = [minute(0, 'cart'), minute(3, 'cart'), minute(4, 'cart')]
  const now = Date.parse('2026-11-15T10:04:30Z')
  const minutes = everyMinute(counted, now)
  expect(minutes.map(({ use }) => use !== undefined)).toEqual([true, false, false, true])
  // Unless it is all there is.
  expect(everyMinute(counted.slice(2), now)).toHaveLength(1)
})
