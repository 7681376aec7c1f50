import { setTimeout as sleep } from 'node:timers/promises'
import { deferred, waitUntil } from '@holdfast/testkit'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createHoldfast } from '../../../src/index.ts'
import { refusalAnswerOf } from '../../../src/http/index.ts'
import type { RateLimitOptions } from '../../../src/rate-limit/index.ts'
import { breakableWire } from '../../support/breakable-wire.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { callerTransaction, pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture('', 'installed')
const monthly = (limit: number, name = fresh()): ReturnType<typeof fixture.hf.rateLimit> =>
  fixture.hf.rateLimit({ name, limit, per: 'month' })

const rows = async (): Promise<number> => {
  const { rowCount } = await fixture.observer.query('SELECT FROM holdfast.rate_limit')
  return rowCount ?? 0
}

describe('a rate limit', () => {
  test('grants until nothing is left, and answers like a quota over HTTP', async () => {
    const [limit, key] = [monthly(3), fresh()]
    expect(await limit.consume(key, 2)).toMatchObject({ ok: true, limit: 3, available: 1 })
    const refused = await limit.consume(key, 2)
    expect(refused).toMatchObject({ ok: false, reason: 'insufficient', available: 1 })
    if (refused.ok) throw new Error('it was to be refused')
    expect(refused.retryAt).toEqual(refused.resetsAt)
    expect(refusalAnswerOf(refused)).toMatchObject({ status: 429 })
    expect(await limit.consume(key)).toMatchObject({ ok: true, available: 0 })
    expect(await limit.consume(key, 4)).toMatchObject({ ok: false, retryAt: undefined })
  })

  test('is the same in every process, and another one by name, window and scope', async () => {
    const [name, key] = [fresh(), fresh()]
    await monthly(5, name).consume(key, 5)
    expect(await monthly(5, name).consume(key)).toMatchObject({ ok: false })
    expect(await monthly(5).consume(key)).toMatchObject({ ok: true })
    expect(await monthly(5, name).consume(key, 1, { scope: 'other' })).toMatchObject({ ok: true })
    const daily = fixture.hf.rateLimit({ name, limit: 5, per: 'day' })
    expect(await daily.consume(key)).toMatchObject({ ok: true, available: 4 })
  })

  test('takes a limit for each key, also from a promise, and different ones at once', async () => {
    const limit = fixture.hf.rateLimit({
      name: fresh(),
      per: 'month',
      limit: (key) => (key.startsWith('pro') ? Promise.resolve(10) : 1),
    })
    const [pro, free] = [`pro-${fresh()}`, fresh()]
    const verdicts = await Promise.all([pro, free, pro, free].map((key) => limit.consume(key)))
    expect(verdicts.map(({ ok, available }) => [ok, available])).toEqual([
      [true, 9],
      [true, 0],
      [true, 8],
      [false, 0],
    ])
  })

  test('decides calls of one key with different limits, each by its own', async () => {
    let most = 0
    const limit = fixture.hf.rateLimit({ name: fresh(), per: 'month', limit: () => (most += 1) })
    const key = fresh()
    const verdicts = await Promise.all([1, 2, 3, 4].map(() => limit.consume(key)))
    expect(verdicts.filter(({ ok }) => ok).length).toBeGreaterThan(0)
    expect((await limit.peek(key)).limit).toBe(5)
  })

  test('forgets a key that is reset, and deletes what is over', async () => {
    const [limit, key, old] = [monthly(1), fresh(), fresh()]
    await limit.consume(key)
    await limit.consume(old)
    await limit.reset(key)
    expect(await limit.peek(key)).toMatchObject({ ok: true, available: 1 })
    await limit.consume(key)
    const before = await rows()
    expect(await limit.forget()).toBe(0)
    await fixture.observer.query(
      `UPDATE holdfast.rate_limit SET until = until - interval '40 days'`,
    )
    expect(await limit.forget({ batch: 1 })).toBe(before)
    expect(await rows()).toBe(0)
    expect(await limit.consume(key)).toMatchObject({ ok: true })
  })

  test('deletes old rows along the way, as new keys come', async () => {
    const [limit, scope] = [monthly(1), fresh()]
    const use = async (count: number): Promise<void> => {
      for (let key = 0; key < count; key += 1) await limit.consume(fresh(), 1, { scope })
    }
    await use(30)
    const before = await rows()
    await fixture.observer.query(
      `UPDATE holdfast.rate_limit SET until = until - interval '40 days'`,
    )
    await use(30)
    expect(await rows()).toBeLessThan(before + 15)
  })

  test('writes nothing when it refuses', async () => {
    const [limit, key] = [monthly(1), fresh()]
    await limit.consume(key)
    const written = async (): Promise<unknown> =>
      (await fixture.observer.query('SELECT xmin, ctid FROM holdfast.rate_limit ORDER BY ctid'))
        .rows
    const before = await written()
    expect(await Promise.all([1, 2, 3].map(() => limit.consume(key)))).toMatchObject([
      { ok: false },
      { ok: false },
      { ok: false },
    ])
    expect(await written()).toEqual(before)
  })

  test.each<readonly [string, object]>([
    ['no span', {}],
    ['both', { per: 'day', rate: '1 min' }],
    ['a rolling window', { rolling: '1 h' }],
    ['for ever', { per: 'lifetime' }],
    ['a zone that is none', { per: 'day', timeZone: 'Nowhere' }],
    ['a burst of a window', { per: 'day', burst: 2 }],
    ['a zone of a rate', { rate: '1 s', timeZone: 'UTC' }],
    ['a rate that is too fine', { rate: 1, limit: 999_999 }],
    ['a fraction', { per: 'day', limit: 1.5 }],
    ['a misspelt option', { per: 'day', lmit: 1 }],
    ['a burst of centuries', { rate: 400 * 366 * 86_400_000, limit: 1 }],
  ])('refuses %s', (_, options) => {
    const given = { name: 'x', limit: 1, ...options } as RateLimitOptions
    expect(() => fixture.hf.rateLimit(given)).toThrow(
      expect.objectContaining({ code: 'OPTION_INVALID' }),
    )
  })

  test('refuses costs and keys that are none, with nothing sent', async () => {
    const limit = monthly(5)
    for (const cost of [0, -1, 0.5, Number.NaN, 2 ** 53]) {
      await expect(limit.consume('key', cost)).rejects.toMatchObject({ code: 'OPTION_INVALID' })
    }
    await expect(limit.consume('')).rejects.toMatchObject({ code: 'LEDGER_NAME_INVALID' })
    await expect(limit.consume('k', 1, { scope: '' })).rejects.toMatchObject({
      code: 'LEDGER_NAME_INVALID',
    })
  })

  test('a cost that no number of the database holds is refused, and nobody beside it', async () => {
    const [name, key] = [fresh(), fresh()]
    const limit = fixture.hf.rateLimit({ name, limit: 1, rate: '1 min' })
    await limit.consume(key)
    // Times its minute, as a number of 64 bits, this one is below zero.
    for (const cost of [3_936_226_173_961_978, Number.MAX_SAFE_INTEGER]) {
      const others = Array.from({ length: 20 }, () => limit.consume(fresh()))
      expect(await limit.consume(key, cost)).toMatchObject({ ok: false, retryAt: undefined })
      const client = await callerTransaction(fixture)
      expect(await limit.consume(client, key, cost)).toMatchObject({ ok: false })
      await client.query('ROLLBACK')
      expect((await Promise.all(others)).every(({ ok }) => ok)).toBe(true)
    }
    expect(await limit.peek(key, { cost: Number.MAX_SAFE_INTEGER })).toMatchObject({ ok: false })
    expect(await limit.consume(key)).toMatchObject({ ok: false, available: 0 })
  })

  test('of a rate whose limit changes, units stay as many as were used', async () => {
    const [name, key] = [fresh(), fresh()]
    const of = (limit: number): ReturnType<typeof monthly> =>
      fixture.hf.rateLimit({ name, limit, rate: '1 h', burst: 10 })
    await of(60).consume(key, 10)
    expect(await of(1).consume(key)).toMatchObject({ ok: false, available: 0 })
    const slow = await of(1).consume(key)
    const fast = await of(3_600).consume(key)
    if (slow.ok || fast.ok) throw new Error('nothing was left')
    expect(Number(slow.retryAt) - Date.now()).toBeGreaterThan(50 * 60_000)
    expect(Number(fast.retryAt) - Date.now()).toBeLessThan(2_000)
  })

  test('says that the schema is missing', async () => {
    const limit = fixture.create({ schema: 'not_there' }).rateLimit({
      name: 'x',
      limit: 1,
      per: 'day',
    })
    await expect(limit.consume('key')).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
    await expect(limit.peek('key')).rejects.toMatchObject({ code: 'SCHEMA_MISSING' })
  })
})

describe("in the caller's transaction", () => {
  test('what it used comes back with a rollback, and stays with a commit', async () => {
    const [limit, key] = [monthly(5), fresh()]
    const client = await callerTransaction(fixture)
    expect(await limit.consume(client, key, 2)).toMatchObject({ ok: true, available: 3 })
    expect(await limit.peek(client, key)).toMatchObject({ available: 3 })
    expect(await limit.peek(key)).toMatchObject({ available: 5 })
    await client.query('ROLLBACK')
    expect(await limit.peek(key)).toMatchObject({ available: 5 })
    await client.query('BEGIN')
    await limit.consume(client, key, 4)
    await limit.reset(client, key)
    await limit.consume(client, key, 1)
    await client.query('COMMIT')
    expect(await limit.peek(key)).toMatchObject({ available: 4 })
  })

  test('a handle without one is refused, and a call beside one too', async () => {
    const limit = monthly(5)
    const client = await fixture.pool.connect()
    await expect(limit.consume(client, 'key')).rejects.toMatchObject({
      code: 'RATE_LIMIT_OUTSIDE_TRANSACTION',
    })
    client.release()
    const nested = fixture.hf.transaction(async () => await limit.consume('key'))
    await expect(nested).rejects.toMatchObject({ code: 'TX_NESTED' })
  })

  test('others wait for its key, in order, and everybody else passes', async () => {
    const [limit, key, other] = [monthly(2), fresh(), fresh()]
    const client = await callerTransaction(fixture)
    await limit.consume(client, key)
    const told = deferred<void>()
    const waiting = Promise.all([limit.consume(key), limit.consume(other), limit.consume(key)])
    void waiting.then(() => told.resolve())
    for (let each = 0; each < 20; each += 1) {
      expect(await limit.consume(fresh())).toMatchObject({ ok: true })
    }
    await client.query('COMMIT')
    expect((await waiting).map(({ ok }) => ok)).toEqual([true, true, false])
    await told.promise
  })

  test('more calls than may wait are refused at once, and the others answered', async () => {
    const [limit, key] = [monthly(2), fresh()]
    const calls = Array.from({ length: 100_001 }, () => limit.consume(key))
    const last = calls.pop()
    const answers = Promise.all(calls)
    await expect(last).rejects.toMatchObject({ code: 'RATE_LIMIT_OVERLOADED' })
    expect((await answers).filter(({ ok }) => ok)).toHaveLength(2)
  })

  test('whoever waits too long is told where it asked, by either way of a call', async () => {
    const name = fresh()
    for (const limit of [5, () => 5]) {
      const slow = fixture.hf.rateLimit({ name, limit, per: 'month', wait: '100 ms' })
      const key = fresh()
      await slow.consume(key)
      const client = await callerTransaction(fixture)
      await slow.consume(client, key)
      const asks = async (): Promise<unknown> => await slow.consume(key)
      const error = await asks().catch((caught: unknown) => caught)
      await client.query('ROLLBACK')
      expect(error).toMatchObject({ code: 'RATE_LIMIT_TIMEOUT' })
      expect(String((error as Error).stack).split('\n')[1]).toContain('asks')
    }
  })

  test('who closes waits for calls under way, and those after it are refused', async () => {
    const hf = fixture.create()
    const [limit, key] = [hf.rateLimit({ name: fresh(), limit: 5, per: 'month' }), fresh()]
    const client = await callerTransaction(fixture)
    await limit.consume(client, key)
    const waiting = limit.consume(key)
    let isClosed = false
    const closing = hf.close().then((closed) => {
      isClosed = true
      return closed
    })
    await expect(limit.consume(key)).rejects.toMatchObject({ code: 'HOLDFAST_CLOSED' })
    expect(isClosed).toBe(false)
    await client.query('COMMIT')
    expect(await waiting).toMatchObject({ ok: true, available: 3 })
    expect(await closing).toEqual({ left: [] })
  })

  test('whoever waits too long is told, and was not counted', async () => {
    const limit = fixture.hf.rateLimit({ name: fresh(), limit: 5, per: 'month', wait: '300 ms' })
    const key = fresh()
    await limit.consume(key)
    const client = await callerTransaction(fixture)
    await limit.consume(client, key)
    await expect(limit.consume(key)).rejects.toMatchObject({ code: 'RATE_LIMIT_TIMEOUT' })
    await client.query('ROLLBACK')
    expect(await limit.consume(key)).toMatchObject({ ok: true, available: 3 })
  })
})

describe('keys that transactions hold', () => {
  /** Two calls after the transaction has the key, and it ends while they are tried again. */
  const heldFor = async (ms: number): Promise<readonly unknown[]> => {
    const [limit, key] = [monthly(100), fresh()]
    await limit.consume(key)
    const client = await fixture.pool.connect()
    await client.query('BEGIN')
    await limit.consume(client, key)
    const first = limit.consume(key)
    await sleep(50)
    const second = limit.consume(key)
    await sleep(ms - 50)
    await client.query('COMMIT')
    client.release()
    return await Promise.all([first, second])
  }

  test('every call is answered, whenever the key comes back', async () => {
    for (const times of [
      [430, 450, 470],
      [490, 510, 530],
      [550, 570, 590],
    ]) {
      for (const answers of await Promise.all(times.map(heldFor)))
        expect(answers).toMatchObject([{ ok: true }, { ok: true }])
    }
  })

  test('one that comes back is answered, however many others do not', async () => {
    const limit = fixture.hf.rateLimit({ name: fresh(), limit: 5, per: 'month', wait: '5 s' })
    const held = Array.from({ length: 30 }, () => fresh())
    const client = await callerTransaction(fixture)
    for (const key of [...held].toSorted()) {
      await limit.consume(key)
      await limit.consume(client, key)
    }
    const free = Array.from({ length: 6 }, () => fresh())
    const other = await callerTransaction(fixture)
    for (const key of free) {
      await limit.consume(key)
      await limit.consume(other, key)
    }
    const { rows: now } = await fixture.observer.query('SELECT clock_timestamp()::text AS at')
    const late = held.map((key) => limit.consume(key).catch((error: unknown) => error))
    const soon = Promise.all(free.map((key) => limit.consume(key)))
    await waitUntil('all of them are set apart', async () => {
      const { rowCount } = await fixture.observer.query(
        `SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%take_in_window%'
           AND query_start > $1::timestamptz + interval '350 ms'`,
        [now[0].at],
      )
      return rowCount === 0 ? undefined : true
    })
    await other.query('COMMIT')
    expect((await soon).map(({ ok }) => ok)).toEqual(free.map(() => true))
    await client.query('ROLLBACK')
    await Promise.all(late)
  })

  test('a reset waits for them, and no longer than it may; nothing of it is left', async () => {
    const limit = fixture.hf.rateLimit({ name: fresh(), limit: 5, per: 'month', wait: '300 ms' })
    const key = fresh()
    const client = await callerTransaction(fixture)
    await limit.consume(client, key, 3) // the first use of it
    await expect(limit.reset(key)).rejects.toMatchObject({ code: 'RATE_LIMIT_TIMEOUT' })
    const resetting = fixture.hf.rateLimit({ name: limit.name, limit: 5, per: 'month' }).reset(key)
    await client.query('COMMIT')
    await resetting
    expect(await limit.peek(key)).toMatchObject({ available: 5 })
  })
})

describe('a lost answer', () => {
  test('may count twice, and never lets more through', async () => {
    await using wire = await breakableWire(fixture.database.directUrl)
    const pool = new pg.Pool({ connectionString: wire.url, max: 1 })
    pool.on('error', () => undefined)
    const limit = createHoldfast(fromPg(pool)).rateLimit({
      name: fresh(),
      limit: 3_000,
      per: 'month',
    })
    const key = fresh()
    await limit.consume(key, 1_000)
    wire.hold()
    const lost = limit.consume(key, 1_000)
    await waitUntil('it was counted', async () => {
      const { rows: found } = await fixture.observer.query(
        'SELECT FROM holdfast.rate_limit WHERE used = 2000',
      )
      return found.length > 0 || undefined
    })
    wire.cut()
    wire.release()
    expect(await lost).toMatchObject({ ok: true, available: 0 })
    expect(await limit.consume(key)).toMatchObject({ ok: false, available: 0 })
    await pool.end()
  })

  test('of a backend that is killed before it counted counts once', async () => {
    const [limit, key] = [monthly(5), fresh()]
    await limit.consume(key)
    const client = await callerTransaction(fixture)
    await limit.consume(client, key)
    const waiting = limit.consume(key)
    await waitUntil('it waits', async () => {
      const { rows: killed } = await fixture.observer.query(
        `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
         WHERE datname = current_database() AND wait_event_type = 'Lock' AND query LIKE '%take_in_window%'`,
      )
      return killed.length > 0 || undefined
    })
    await client.query('COMMIT')
    expect(await waiting).toMatchObject({ ok: true, available: 2 })
  })
})
