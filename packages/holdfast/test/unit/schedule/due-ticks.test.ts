import { describe, expect, test } from 'vitest'
import { dueTicks, type Policy } from '../../../src/schedule/due-ticks.ts'
import { type Rule, ruleOf } from '../../../src/schedule/rule.ts'

const minute = 60_000
const noon = Date.parse('2026-05-01T12:00:00Z')

function policy(changed: Partial<Policy> = {}): Policy {
  const rule = ruleOf({ every: '1 min' }) as Rule
  return { name: 'x', rule, missed: 'latest', graceMs: 10_000, jitterMs: 0, ...changed }
}

describe('ticks that were missed', () => {
  const last = noon - 5 * minute
  const now = noon + 500

  test('latest: the last one, the others are counted', () => {
    expect(dueTicks(policy(), last, now)).toEqual({
      run: [noon],
      passed: { atMs: noon - minute, count: 4 },
      nextMs: noon + minute,
    })
  })

  test('all: as many as are allowed, oldest first', () => {
    expect(dueTicks(policy({ missed: { all: 3 } }), last, now)).toMatchObject({
      run: [noon - 2 * minute, noon - minute, noon],
      passed: { atMs: noon - 3 * minute, count: 2 },
    })
    const all = dueTicks(policy({ missed: { all: 10 } }), last, now)
    expect(all).toMatchObject({ passed: undefined })
    expect(all.run).toHaveLength(5)
  })

  test('skip: only one that is hardly late', () => {
    const skip = policy({ missed: 'skip' })
    expect(dueTicks(skip, last, now)).toMatchObject({ run: [noon], passed: { count: 4 } })
    expect(dueTicks(skip, last, noon + 10_001)).toMatchObject({
      run: [],
      passed: { atMs: noon, count: 5 },
    })
  })

  test('nothing is due twice, and counting ends', () => {
    expect(dueTicks(policy(), noon, now)).toMatchObject({ run: [], passed: undefined })
    expect(dueTicks(policy(), 0, now).passed?.count).toBe(1_000)
  })
})

describe('jitter', () => {
  const jittered = policy({ jitterMs: 30_000 })

  test('is the same for everybody, differs between ticks, and keeps their order', () => {
    const delays = Array.from({ length: 20 }, (_, at) => {
      const tick = noon + at * minute
      return (dueTicks(jittered, tick - minute, tick).nextMs ?? 0) - tick
    })
    expect(new Set(delays).size).toBeGreaterThan(15)
    for (const delay of delays) {
      expect(delay).toBeGreaterThanOrEqual(0)
      expect(delay).toBeLessThan(30_000)
    }
    // Longer than the gap to the next tick it cannot be.
    const wild = policy({ jitterMs: 3_600_000 })
    for (let at = 0; at < 20; at += 1) {
      const tick = noon + at * minute
      expect((dueTicks(wild, tick - minute, tick).nextMs ?? 0) - tick).toBeLessThan(minute)
    }
  })

  test('a tick is due when its delay is over, and not before', () => {
    const due = dueTicks(jittered, noon - minute, noon).nextMs as number
    expect(dueTicks(jittered, noon - minute, due - 1).run).toEqual([])
    expect(dueTicks(jittered, noon - minute, due).run).toEqual([noon])
  })
})
