import { describe, expect, test } from 'vitest'
import { type Rule, ruleOf } from '../../../src/schedule/rule.ts'

function rule(cron: string, timeZone?: string): Rule {
  return ruleOf(timeZone === undefined ? { cron } : { cron, timeZone }) as Rule
}

/** All ticks between two moments, by going forward. */
function between(of: Rule, from: string, to: string): string[] {
  const ticks: string[] = []
  for (let at = of.next(Date.parse(from) - 1); at !== undefined && at < Date.parse(to); ) {
    ticks.push(new Date(at).toISOString())
    at = of.next(at)
  }
  return ticks
}

/**
 * Four zones: clocks change by an hour on Sunday at 02:00 and 03:00 (Berlin, New York), at midnight
 * between Saturday and Sunday (Santiago), and by half an hour (Lord Howe).
 */
const changes = {
  'Europe/Berlin': {
    gap: ['2026-03-29', '02:30', '2026-03-29T01:00:00.000Z'],
    overlap: ['2026-10-25', '02:30', '2026-10-25T00:30:00.000Z', '2026-10-25T01:30:00.000Z'],
  },
  'America/New_York': {
    gap: ['2026-03-08', '02:30', '2026-03-08T07:00:00.000Z'],
    overlap: ['2026-11-01', '01:30', '2026-11-01T05:30:00.000Z', '2026-11-01T06:30:00.000Z'],
  },
  'America/Santiago': {
    gap: ['2026-09-06', '00:15', '2026-09-06T04:00:00.000Z'],
    overlap: ['2026-04-04', '23:30', '2026-04-05T02:30:00.000Z', '2026-04-05T03:30:00.000Z'],
  },
  'Australia/Lord_Howe': {
    gap: ['2026-10-04', '02:15', '2026-10-03T15:30:00.000Z'],
    overlap: ['2026-04-05', '01:45', '2026-04-04T14:45:00.000Z', '2026-04-04T15:15:00.000Z'],
  },
} as const

describe.each(Object.entries(changes))('%s', (timeZone, { gap, overlap }) => {
  const daily = (time: string): Rule => {
    const [hours = '', minutes = ''] = time.split(':')
    return rule(`${Number(minutes)} ${Number(hours)} * * *`, timeZone)
  }
  /** From a day and a half before the change to as much after it. */
  const around = (day: string): [string, string] => {
    const noon = Date.parse(`${day}T12:00:00Z`)
    const away = 60 * 3_600_000
    return [new Date(noon - away).toISOString(), new Date(noon + away).toISOString()]
  }

  test('a daily time that does not exist runs once, right after the gap', () => {
    const [day, time, expected] = gap
    const ticks = between(daily(time), ...around(day))
    expect(ticks.filter((tick) => tick === expected)).toHaveLength(1)
    // One a day, the day of the change included.
    expect(ticks).toHaveLength(5)
  })

  test('a daily time that comes twice runs once, the first time', () => {
    const [day, time, first, second] = overlap
    const ticks = between(daily(time), ...around(day))
    expect(ticks).toContain(first)
    expect(ticks).not.toContain(second)
    expect(ticks).toHaveLength(5)
  })

  test('what runs every quarter of an hour goes on as if nothing had happened', () => {
    for (const [day] of [gap, overlap]) {
      const [from, to] = around(day)
      const ticks = between(rule('*/15 * * * *', timeZone), from, to).map((tick) =>
        Date.parse(tick),
      )
      const steps = ticks.slice(1).map((tick, at) => tick - (ticks[at] as number))
      expect(new Set(steps)).toEqual(new Set([900_000]))
    }
  })

  test('backwards it gives the same ticks as forwards, at every moment', () => {
    for (const cron of ['30 2 * * *', '15 0 * * *', '*/20 * * * *', '45 1-3 * * *', '0 0 * * *']) {
      const of = rule(cron, timeZone)
      for (const [day] of [gap, overlap]) {
        const [from, to] = around(day)
        const ticks = between(of, from, to).map((tick) => Date.parse(tick))
        const inside = (at: number): boolean => at >= Date.parse(from)
        expect(of.latest(Date.parse(to) - 1, ticks.length).filter(inside)).toEqual(ticks)
        for (const [at, tick] of ticks.entries()) {
          expect(of.latest(tick, 1)).toEqual([tick])
          expect(of.latest(tick + 999, 1)).toEqual([tick])
          if (at > 0) expect(of.latest(tick - 1, 1)).toEqual([ticks[at - 1]])
        }
      }
    }
  })
})

describe('an interval', () => {
  const fiveMinutes = ruleOf({ every: '5 min' }) as Rule

  test('ticks at multiples since 1970, whoever asks', () => {
    const moment = Date.parse('2026-05-01T10:07:30Z')
    expect(fiveMinutes.latest(moment, 2)).toEqual([
      Date.parse('2026-05-01T10:00:00Z'),
      Date.parse('2026-05-01T10:05:00Z'),
    ])
    expect(fiveMinutes.next(moment)).toBe(Date.parse('2026-05-01T10:10:00Z'))
    expect(fiveMinutes.next(Date.parse('2026-05-01T10:10:00Z'))).toBe(
      Date.parse('2026-05-01T10:15:00Z'),
    )
  })
})

describe('what cannot work is refused', () => {
  test.each([
    ['cron', { cron: 'every day' }],
    ['cron', { cron: '61 * * * *' }],
    // The clock of this machine, and a date.
    ['cron', { cron: '? * * * *' }],
    ['cron', { cron: '2026-01-01T00:00:00' }],
    ['timeZone', { cron: '0 0 * * *', timeZone: 'Europe/Nowhere' }],
    ['every', { every: 0 }],
  ] as const)('%s: %o', (option, when) => {
    expect(() => ruleOf(when)).toThrow(
      expect.objectContaining({
        code: 'OPTION_INVALID',
        details: expect.objectContaining({ option }),
      }),
    )
  })

  test('a rule that never comes has no tick', () => {
    const never = rule('0 0 30 2 *')
    expect(never.next(Date.now())).toBeUndefined()
    expect(never.latest(Date.now(), 3)).toEqual([])
  })
})
