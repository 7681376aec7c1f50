import { barrier, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { RateLimit, RateLimitOptions } from '../../../src/rate-limit/index.ts'
import { migrateFiles } from '../../../src/schema/migrate.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { callerTransaction, pgFixture } from '../../support/pg-fixture.ts'
import { weakened } from '../../support/weakened-files.ts'

/** Callers of several processes, each with a pool and a queue of its own. Never over the limit, and no unit lost. */
const fixture = pgFixture('', 'installed')
const processes = 4
const callers = 12
const pools: pg.Pool[] = []
const stale = 'stale_check'

beforeAll(async () => {
  for (let each = 0; each < processes; each += 1) {
    pools.push(new pg.Pool({ connectionString: fixture.database.url, max: 3 }))
  }
  // The check looks at what was there when the statement began, and not at the row that it has waited for.
  const files = weakened(
    'take_in_window',
    /AND CASE WHEN r\.until > moment THEN r\.used ELSE 0 END <= coalesce\(u\.most, limits\[1\]\) - u\.amount/,
    `AND EXISTS (SELECT FROM rate_limit s WHERE s.bucket = u.bucket AND s.key = u.key
        AND CASE WHEN s.until > moment THEN s.used ELSE 0 END <= coalesce(u.most, limits[1]) - u.amount)`,
  )
  await migrateFiles(fromPg(fixture.observer), files, { schema: stale })
})
afterAll(async () => {
  for (const pool of pools) await pool.end()
})

const limit = 60
const spans: readonly (readonly [string, Partial<RateLimitOptions>])[] = [
  ['a window', { per: 'month' }],
  // One unit in years: nothing comes back meanwhile.
  ['a rate', { rate: 36_500 * 86_400_000, burst: limit }],
]

interface Tally {
  granted: number
  /** The cheapest call that was refused. */
  refused: number
}

/** Everybody asks for units of one key until there are none for them. */
async function storm(limits: readonly RateLimit<pg.PoolClient>[], dearest: number): Promise<Tally> {
  const key = fresh()
  const together = barrier(limits.length * callers)
  const tally: Tally = { granted: 0, refused: Infinity }
  await Promise.all(
    limits.flatMap((each, process) =>
      Array.from({ length: callers }, async (_, caller) => {
        await together()
        for (let call = 0; call < 6; call += 1) {
          const cost = 1 + ((caller * 7 + call * 3 + process) % dearest)
          const verdict = await each.consume(key, cost)
          if (verdict.ok) tally.granted += cost
          else tally.refused = Math.min(tally.refused, cost)
        }
      }),
    ),
  )
  const left = await (limits[0] as RateLimit<pg.PoolClient>).peek(key)
  expect(left.available).toBe(limit - tally.granted)
  return tally
}

describe.each(spans)('%s', (_, span) => {
  const limits = (name = fresh()): RateLimit<pg.PoolClient>[] =>
    pools.map((pool) =>
      createHoldfast(fromPg(pool)).rateLimit({ name, limit, ...span } as RateLimitOptions),
    )

  test.each([1, 7])('with costs up to %i', async (dearest) => {
    for (let round = 0; round < 5; round += 1) {
      const { granted, refused } = await storm(limits(), dearest)
      expect(granted).toBeLessThanOrEqual(limit)
      // What was refused did not fit: nothing was given back meanwhile.
      expect(granted + refused).toBeGreaterThan(limit)
      if (dearest === 1) expect(granted).toBe(limit)
    }
  })

  test('on many new keys at once', async () => {
    const all = limits()
    const keys = Array.from({ length: 40 }, () => fresh())
    const together = barrier(processes)
    const granted = new Map<string, number>()
    await Promise.all(
      all.map(async (each) => {
        await together()
        await Promise.all(
          keys.flatMap((key) =>
            Array.from({ length: 30 }, async () => {
              if ((await each.consume(key)).ok) granted.set(key, (granted.get(key) ?? 0) + 1)
            }),
          ),
        )
      }),
    )
    expect([...granted.values()]).toEqual(keys.map(() => limit))
  })
})

/** Two transactions want the last unit; the second one waits for the first. Which of them get it. */
async function lastUnit(schema: string): Promise<boolean[]> {
  const hf = fixture.create({ schema })
  const one = hf.rateLimit({ name: 'last', limit: 2, per: 'month' })
  const key = fresh()
  await one.consume(key)
  const [first, second] = [await callerTransaction(fixture), await callerTransaction(fixture)]
  const taken = await one.consume(first, key)
  const waiting = one.consume(second, key)
  await waitUntil('the second one waits', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT FROM pg_locks WHERE NOT granted AND locktype = 'transactionid'
       AND pid IN (SELECT pid FROM pg_stat_activity WHERE datname = current_database())`,
    )
    return rows.length > 0 || undefined
  })
  await first.query('COMMIT')
  const verdicts = [taken, await waiting]
  await second.query('COMMIT')
  return verdicts.map(({ ok }) => ok)
}

describe('a row that was waited for', () => {
  test('is checked again', async () => {
    expect(await lastUnit('holdfast')).toEqual([true, false])
  })

  test('control: without that, more is granted than there is', async () => {
    expect(await lastUnit(stale)).toEqual([true, true])
  })
})
