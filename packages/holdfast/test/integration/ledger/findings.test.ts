/** What a review found, each as one of its family; the ids are those of the review. */
import { deferred, sample, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, onTestFinished, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import type { HoldfastError } from '../../../src/errors.ts'
import { createHoldfast } from '../../../src/index.ts'
import type { Verdict } from '../../../src/ledger/index.ts'
import type { Quota } from '../../../src/quota/index.ts'
import { isHostile } from '../../support/hostile-database.ts'
import { inTime, named } from '../../support/in-time.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'
import { callerTransaction, pidOf } from '../../support/pg-fixture.ts'

const fixture = ledgerFixture()
const once = (): { operationId: string } => ({ operationId: fresh() })

/** What tells one answer from another. */
const told = (verdict: Verdict<number>): object => {
  const { ok, replayed, available } = verdict
  return ok ? { ok, replayed, available } : { ok, reason: verdict.reason, available }
}

describe('L1: upkeep makes nobody wait', () => {
  /** Somebody who has read all movements, and has not ended yet. */
  async function reading(): Promise<{ end(): Promise<void> }> {
    const reader = await callerTransaction(fixture)
    await reader.query('SELECT count(*) FROM holdfast.movement')
    return { end: async () => void (await reader.query('COMMIT')) }
  }

  test('new months are made when nobody reads all of them, and until then everybody works', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 1_000, per: 'lifetime' })
    const first = once()
    await quota.consume('k', 1, first)
    const reader = await reading()
    const tried = deferred()
    const maintaining = fixture.hf.ledger.maintain({
      monthsAhead: 15,
      onProgress: () => tried.resolve(),
    })
    await tried.promise
    const began = performance.now()
    for (let n = 0; n < 20; n += 1) {
      expect((await quota.consume('k', 1, once())).ok).toBe(true)
      expect(await quota.consume('k', 1, first)).toMatchObject({ replayed: true })
      expect((await fixture.hf.ledger.history(quota.name, 'k')).movements).not.toEqual([])
    }
    inTime(performance.now() - began, 4_000)
    await reader.end()
    expect((await maintaining).monthsMade).toBeGreaterThan(0)
  })

  test('and gives up in time', async () => {
    const reader = await reading()
    const maintaining = fixture.hf.ledger.maintain({ monthsAhead: 20, wait: '400 ms' })
    await expect(maintaining).rejects.toMatchObject({ code: 'LEDGER_TIMEOUT' })
    await reader.end()
  })
})

describe('L2: nobody waits for a stranger', () => {
  type AnyQuota = Quota<pg.PoolClient, number>

  /** A transaction of somebody that keeps the account of a key. */
  async function keeping(
    quota: AnyQuota,
    key: string,
  ): Promise<{ readonly pid: number; end(): Promise<void> }> {
    const holder = await callerTransaction(fixture)
    await quota.consume(holder, key, 1, once())
    return { pid: await pidOf(holder), end: async () => void (await holder.query('COMMIT')) }
  }

  const codesOf = async (calls: readonly Promise<unknown>[]): Promise<readonly string[]> =>
    (await Promise.allSettled(calls)).map((each) =>
      each.status === 'fulfilled' ? 'ok' : (each.reason as HoldfastError).code,
    )

  test('one account that is locked keeps nobody from the others', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100_000, per: 'lifetime' })
    for (const key of ['hot', 'x', 'y']) await quota.consume(key, 1, once())
    const holder = await keeping(quota, 'hot')
    const hot = Array.from({ length: 5 }, () => quota.consume('hot', 1, once()))
    const began = performance.now()
    for (let n = 0; n < 50; n += 1) {
      const others = ['x', 'y'].map((key) => quota.consume(key, 1, once()))
      expect((await Promise.all(others)).every(({ ok }) => ok)).toBe(true)
    }
    inTime(performance.now() - began, 3_000)
    // Who comes later for the same account comes later.
    const late = quota.consume('hot', 1, once())
    await holder.end()
    const verdicts = await Promise.all([...hot, late])
    expect(verdicts.map(({ available }) => available)).toEqual(
      [1, 2, 3, 4, 5, 6].map((n) => 100_000 - 2 - n),
    )
  })

  test.each([true, false])(
    'a call ends at its limit, names who it is, and has changed nothing (coalesce: %s)',
    async (coalesce) => {
      const hf = fixture.create({ ledger: { coalesce } })
      const quota = hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
      await quota.consume('hot', 1, once())
      const holder = await keeping(quota, 'hot')
      const began = performance.now()
      const error = await quota.consume('hot', 1, { ...once(), wait: '200 ms' }).then(
        () => expect.unreachable(),
        (reason: unknown) => reason as HoldfastError,
      )
      expect(named(error)).toMatchObject({
        code: 'LEDGER_TIMEOUT',
        name: 'ContentionError',
        blockers: [{ pid: holder.pid }],
      })
      inTime(performance.now() - began, 200 + 400 + 250)
      await holder.end()
      expect((await quota.peek('hot')).available).toBe(8)
    },
  )

  test('what a locked account and a free one share is neither lost nor split', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    for (const key of ['hot', 'x']) await quota.consume(key, 1, { ...once(), scope: 's' })
    const holder = await callerTransaction(fixture)
    await quota.consume(holder, 'hot', 1, { ...once(), scope: 's' })
    const lines = [await quota.line('hot', 1), await quota.line('x', 1)]
    const both = fixture.hf.ledger.apply(lines, { ...once(), scope: 's' })
    const free = await quota.consume('x', 1, { ...once(), scope: 's' })
    expect(free.ok).toBe(true)
    await holder.query('COMMIT')
    expect((await both).lines).toMatchObject([{ available: 7 }, { available: 7 }])
  })

  test('a signal takes back what has not been sent', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
    await quota.consume('hot', 1, once())
    const holder = await keeping(quota, 'hot')
    const first = quota.consume('hot', 1, once())
    await waitUntil('it is set apart', async () => {
      const { rows } = await fixture.observer.query(
        `SELECT FROM pg_stat_activity WHERE query LIKE '%locked_lines%' AND pid <> pg_backend_pid()
         AND datname = current_database()`,
      )
      return rows.length > 0 ? true : undefined
    })
    const stop = new AbortController()
    const second = quota.consume('hot', 1, { ...once(), signal: stop.signal })
    stop.abort(new Error('gone'))
    await expect(second).rejects.toThrow('gone')
    const third = quota.consume('hot', 1, { ...once(), signal: stop.signal })
    await expect(third).rejects.toThrow('gone')
    // Also one that was under way when it came, and was not let in.
    const late = new AbortController()
    const fourth = fixture
      .create({ ledger: { coalesce: false } })
      .quota({ name: quota.name, limit: 10, per: 'lifetime' })
      .consume('hot', 1, { ...once(), signal: late.signal })
    setTimeout(() => late.abort(new Error('gone too')), 50)
    await expect(fourth).rejects.toThrow('gone too')
    await holder.end()
    expect((await first).available).toBe(7)
  })

  test('more than may wait are refused', async () => {
    const hf = fixture.create({ ledger: { queue: 3 } })
    const quota = hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
    const calls = Array.from({ length: 5 }, () => quota.consume('k', 1, once()))
    expect(await codesOf(calls)).toEqual([
      'ok',
      'ok',
      'ok',
      'LEDGER_OVERLOADED',
      'LEDGER_OVERLOADED',
    ])
  })

  test('a statement_timeout of the server does not multiply the calls', async () => {
    const pool = new pg.Pool({
      connectionString: fixture.database.directUrl,
      max: 4,
      statement_timeout: 150,
    })
    onTestFinished(async () => await pool.end())
    const hf = createHoldfast(fromPg(pool), { ledger: { wait: '600 ms' } })
    const quota = hf.quota({ name: fresh(), limit: 1_000, per: 'lifetime' })
    await quota.consume('hot', 1, once())
    const holder = await keeping(quota, 'hot')
    const began = performance.now()
    const calls = Array.from({ length: 32 }, () => quota.consume('hot', 1, once()))
    expect(new Set(await codesOf(calls))).toEqual(new Set(['LEDGER_TIMEOUT']))
    inTime(performance.now() - began, 2_000)
    await holder.end()
  })
})

describe('L3: a limit that was set counts in windows that nobody has opened yet', () => {
  /** As if some days had passed since the limit was set. */
  async function later(book: string): Promise<void> {
    for (const table of ['balance', 'account']) {
      const id = table === 'account' ? 't.id' : 't.account'
      await fixture.observer.query(
        `DELETE FROM holdfast.${table} t USING holdfast.account a
         WHERE a.bucket = t.bucket AND a.id = ${id} AND a.book = $1 AND a.window_start > '-infinity'`,
        [book],
      )
    }
  }

  test.each(['minute', 'day', 'month'] as const)(
    'per %s, alone, at once and in several books',
    async (per) => {
      const name = fresh()
      const quota = fixture.hf.quota({ name, limit: 100, per })
      const other = fixture.hf.quota({ name: `${name} too`, limit: 100, per })
      const keys = ['alone', 'first', 'second', 'several', 'short', 'lower']
      for (const key of keys) await quota.setLimit(key, key === 'lower' ? 10 : 10_000, once())
      await later(name)
      expect((await quota.peek('alone')).available).toBe(10_000)
      expect(told(await quota.consume('alone', 500, once()))).toMatchObject({
        ok: true,
        available: 9_500,
      })
      const both = await Promise.all(
        ['first', 'second'].map((key) => quota.consume(key, 500, once())),
      )
      expect(both.map(told)).toMatchObject([{ available: 9_500 }, { available: 9_500 }])
      const lines = [await quota.line('several', 500), await other.line('several', 5)]
      const several = await fixture.hf.ledger.apply(lines, { ...once(), scope: 'several' })
      expect(several.lines).toMatchObject([{ available: 9_500 }, { available: 95 }])
      expect(told(await quota.consume('short', 10_001, once()))).toEqual({
        ok: false,
        reason: 'insufficient',
        available: 10_000,
      })
      expect(told(await quota.consume('lower', 50, once()))).toEqual({
        ok: false,
        reason: 'insufficient',
        available: 10,
      })
    },
  )
})

describe('L4: nothing is told as a failure that was applied', () => {
  test('a number book refuses what it could not read', async () => {
    const credits = fixture.hf.credits({ name: fresh() })
    await expect(credits.grant('k', 2n ** 60n, once())).rejects.toMatchObject({
      code: 'LEDGER_AMOUNT_UNSAFE',
    })
    const most = Number.MAX_SAFE_INTEGER
    expect((await credits.grant('k', most, once())).ok).toBe(true)
    expect(told(await credits.grant('k', 1, once()))).toEqual({
      ok: false,
      reason: 'too-large',
      available: most,
    })
    expect(told(await credits.spend('k', 1, once()))).toEqual({
      ok: true,
      replayed: false,
      available: most - 1,
    })
  })

  test('of an account that counts beyond, by whatever way, it changes nothing', async () => {
    const name = fresh()
    const big = fixture.hf.credits({ name, amounts: 'bigint' })
    await big.grant('k', 2n ** 60n, once())
    await fixture.hf.ledger.redeclare(name, { as: 'credits' })
    const numbers = createHoldfast(fromPg(fixture.pool)).credits({ name })
    const before = await fixture.hf.ledger.balance(name, 'k', { amounts: 'bigint' })
    const calls = [
      async () => await numbers.spend('k', 1, once()),
      async () => await numbers.hold('k', 1, { ...once(), ttl: '1 min' }),
      async () => await numbers.grant('k', 1, once()),
      async () =>
        await fixture.hf.ledger.apply([await big.line('k', 1n)], { ...once(), scope: 'k' }),
    ]
    for (const call of calls) {
      await expect(call()).rejects.toMatchObject({ code: 'LEDGER_AMOUNT_UNSAFE' })
    }
    expect(await fixture.hf.ledger.balance(name, 'k', { amounts: 'bigint' })).toEqual(before)
    const lines = [await big.line('k', 7n)]
    const verdict = await fixture.hf.ledger.apply(lines, {
      ...once(),
      scope: 'k',
      amounts: 'bigint',
    })
    expect(verdict).toMatchObject({ ok: true, available: 2n ** 60n - 7n })
  })
})

describe('L5: several kinds of one key in one operation', () => {
  test('are repeated as they were, in any order of their lines', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
    await quota.consume('k', 30, { operationId: 'old' })
    for (const back of [10, 20]) {
      const operationId = fresh()
      const call = async (): Promise<Verdict<number>> => {
        const lines = [
          await quota.line('k', back, { of: 'old' }),
          await quota.line('k', 5),
          await quota.line('k', 3, { ttl: '1 h' }),
        ]
        return await fixture.hf.ledger.apply(back === 10 ? lines : lines.toReversed(), {
          operationId,
          scope: 'k',
        })
      }
      const first = await call()
      expect(first).toMatchObject({ ok: true, replayed: false })
      expect(await call()).toEqual({ ...first, replayed: true })
    }
  })

  test('are given back from each of them, and never more than they took', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
    const lines = [await quota.line('k', 5), await quota.line('k', 7, { ttl: '1 h' })]
    const mixed = await fixture.hf.ledger.apply(lines, { operationId: 'mix', scope: 'k' })
    const refund = async (amount: number): Promise<object> =>
      told(await quota.refund('k', amount, { ...once(), of: 'mix' }))
    expect(await refund(6)).toMatchObject({ ok: false, reason: 'over-refund' })
    expect(await refund(2)).toMatchObject({ ok: true, available: 90 })
    await quota.settle(mixed.ok ? (mixed.holdId as string) : '', 7)
    expect(await refund(9)).toMatchObject({ ok: true, available: 99 })
    expect(await refund(1)).toMatchObject({ ok: true, available: 100 })
    expect(await refund(1)).toMatchObject({ ok: false, reason: 'over-refund' })
  })
})

test('L6: a refused extension has extended nothing', async () => {
  const stock = fixture.hf.stock({ name: fresh() })
  const both = [
    { sku: 'a', quantity: 1 },
    { sku: 'b', quantity: 1 },
  ]
  await stock.receive(both, { externalId: fresh() })
  const reserved = await stock.reserve(both, { externalId: fresh(), ttl: '1 min' })
  const holdId = reserved.ok ? (reserved.holdId as string) : ''
  await stock.release(holdId, { lines: [{ sku: 'b' }] })
  const expiries = async (): Promise<unknown[]> => {
    const id = holdId.slice(4)
    const { rows } = await fixture.observer.query(
      'SELECT state, expires_at FROM holdfast.hold WHERE id = $1 ORDER BY account',
      [id],
    )
    return rows
  }
  const before = await expiries()
  expect(await stock.extend(holdId, '10 h')).toMatchObject({ ok: false, reason: 'ended' })
  expect(await expiries()).toEqual(before)
})

test('L7: only what was taken can be given back', async () => {
  const quota = fixture.hf.quota({ name: fresh(), limit: 10, per: 'lifetime' })
  await quota.consume('k', 10, once())
  await quota.adjust('k', 5, { operationId: 'up', reason: 'a test' })
  await quota.adjust('k', -2, { operationId: 'down', reason: 'a test' })
  expect(told(await quota.refund('k', 5, { ...once(), of: 'up' }))).toMatchObject({
    reason: 'not-found',
  })
  expect(told(await quota.refund('k', 2, { ...once(), of: 'down' }))).toMatchObject({
    ok: true,
    available: 5,
  })
})

test.each([1, 2])(
  'L8: the time of a hold begins when it is made, not when it is asked for (%i at once)',
  async (count) => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 100, per: 'lifetime' })
    const keys = ['k', 'l'].slice(0, count)
    for (const key of keys) await quota.consume(key, 1, once())
    const holder = await callerTransaction(fixture)
    await quota.consume(holder, 'k', 1, once())
    const holding = keys.map((key) => quota.hold(key, 5, { ...once(), ttl: '500 ms' }))
    await fixture.observer.query('SELECT pg_sleep(0.6)')
    const { rows } = await fixture.observer.query<{ now: Date }>('SELECT clock_timestamp() AS now')
    await holder.query('COMMIT')
    const [verdict] = await Promise.all(holding)
    const expiresAt = verdict?.ok === true ? (verdict.expiresAt as Date).getTime() : 0
    expect(expiresAt).toBeGreaterThanOrEqual((rows[0] as { now: Date }).now.getTime() + 499)
  },
)

describe('L9: an id that may be used again', () => {
  test('after a refusal that is not remembered any longer, also by who remembers none', async () => {
    const name = fresh()
    const sticky = fixture.hf.stock({ name, stickyFor: '1 s' })
    const plain = fixture.hf.stock({ name, stickyFor: false })
    const line = [{ sku: 'm', quantity: 1 }]
    expect((await sticky.issue(line, { externalId: 'o' })).ok).toBe(false)
    await sticky.receive([{ sku: 'm', quantity: 5 }], { externalId: 'r' })
    await fixture.observer.query('SELECT pg_sleep(1.1)')
    expect(await plain.issue(line, { externalId: 'o' })).toMatchObject({
      ok: true,
      replayed: false,
    })
  })

  test('is that of a grant for as long as the grant is kept', async () => {
    const credits = fixture.hf.credits({ name: fresh() })
    await credits.grant('k', 5, { operationId: 'g' })
    await fixture.observer.query(
      `UPDATE holdfast.operation SET at = at - interval '3 days' WHERE kind = 8`,
    )
    await fixture.observer.query(
      `SELECT holdfast.forget_operations(now() - interval '2 days', 0, 4095)`,
    )
    expect(await credits.grant('k', 5, { operationId: 'g' })).toMatchObject({
      ok: true,
      replayed: true,
      available: 5,
    })
    expect(await credits.grant('k', 6, { operationId: 'g' })).toMatchObject({
      ok: false,
      reason: 'conflict',
      field: 'amount',
    })
  })
})

describe('L10: rates', () => {
  test('that take longer than there are dates are refused without one', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 1, rate: '400000 days', burst: 1_000 })
    expect((await quota.consume('k', 1_000, once())).ok).toBe(true)
    expect(await quota.consume('k', 1_000, once())).toMatchObject({
      ok: false,
      retryAt: undefined,
    })
    expect(await quota.peek('k', { cost: 1_000 })).toMatchObject({ retryAt: undefined })
  })

  test('give nothing for time that a clock shows twice', async () => {
    const quota = fixture.hf.quota({ name: fresh(), limit: 10, rate: '1 h' })
    await quota.consume('k', 4, once())
    await fixture.observer.query(
      `UPDATE holdfast.balance SET refilled_at = refilled_at + interval '2 hours'
      WHERE account IN (SELECT id FROM holdfast.account WHERE book = $1)`,
      [quota.name],
    )
    expect(told(await quota.consume('k', 6, once()))).toMatchObject({ ok: true, available: 0 })
    expect(told(await quota.consume('k', 1, once()))).toMatchObject({ ok: false, available: 0 })
  })
})

describe('L11: windows of all time zones', () => {
  // In a hostile database every operator of this statement is a slow function.
  test.skipIf(isHostile)('follow on each other, and contain every moment', async () => {
    const { rows } = await fixture.observer.query<{ name: string }>(
      `SELECT name FROM pg_timezone_names WHERE name !~ '^posix/'
       AND name NOT IN (SELECT abbrev FROM pg_timezone_abbrevs) ORDER BY name`,
    )
    const zones = sample(rows.map(({ name }) => name)).concat('America/Havana', 'Atlantic/Azores')
    // Days on which clocks are changed somewhere.
    const { rows: wrong } = await fixture.observer.query(
      `SELECT z, s, e FROM unnest($1::text[]) AS z,
         generate_series('2024-01-01T12:00Z'::timestamptz, '2028-12-31T12:00Z', interval '1 day') AS d,
         LATERAL (SELECT holdfast.window_start('day', z, d) AS s, holdfast.window_end('day', z, d) AS e OFFSET 0) AS w
       WHERE extract(month FROM d) IN (3, 4, 9, 10, 11) AND extract(isodow FROM d) IN (5, 6, 7)
         AND (s > d OR e <= d OR holdfast.window_start('day', z, e) <> e
           OR holdfast.window_start('day', z, e - interval '1 us') <> s)
       LIMIT 5`,
      [zones],
    )
    expect(wrong).toEqual([])
  })

  test('control: those of PostgreSQL itself begin in the future where clocks are set back to midnight', async () => {
    const { rows } = await fixture.observer.query(
      `SELECT date_trunc('day', d, z) > d AS future, holdfast.window_start('day', z, d) > d AS ours
       FROM (VALUES ('2026-11-01T04:30Z'::timestamptz, 'America/Havana'), ('2026-10-25T00:30Z', 'Atlantic/Azores')) AS v(d, z)`,
    )
    expect(rows).toEqual(Array(2).fill({ future: true, ours: false }))
  })

  // What each name means to PostgreSQL: server-behaviour/time-zones.
  test.each([
    'CET',
    'est',
    'WET',
    'PST',
    'IST',
    'Bst',
    'CST',
    'AST',
    'NST',
    'ACT',
    'ART',
    'Japan',
    '+02:00',
  ])('%s is refused: it may be another zone on PostgreSQL', (timeZone) => {
    expect(() => fixture.hf.quota({ name: 'z', limit: 1, per: 'day', timeZone })).toThrow(
      /name a place|must be a name like/,
    )
  })
})
