/**
 * Clients whose user reads booleans, numbers, moments and JSON in his own way. What a client makes of a type is his: all
 * that we read ourselves comes as text, so that nothing of ours gets to a parser.
 */
import { deferred } from '@holdfast/testkit'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { lockKey } from '../../../src/core/locks/lock-key.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { examine } from '../../../src/health/index.ts'
import { createHoldfast, type Holdfast } from '../../../src/index.ts'
import { inspect } from '../../../src/schema/index.ts'
import { everyClient, type OpenClient } from '../../support/every-client.ts'
import { testDatabase } from '../../support/database.ts'
import { named } from '../../support/in-time.ts'
import { fresh } from '../../support/ledger-fixture.ts'
import { errorOf } from '../rows/open-room.ts'

/** What the parsers give, whatever they are given. */
const odd = { odd: true }
/** Types that a parser was asked for. */
const parsed: number[] = []
const types = {
  bool: 16,
  int8: 20,
  int2: 21,
  int4: 23,
  json: 114,
  float4: 700,
  float8: 701,
  date: 1082,
  timestamp: 1114,
  timestamptz: 1184,
  interval: 1186,
  numeric: 1700,
  jsonb: 3802,
} as const
const parse = (type: number) => (): unknown => {
  parsed.push(type)
  return odd
}

const clients: typeof everyClient = {
  ...everyClient,
  async 'postgres.js with types'(url) {
    const own = Object.entries(types).map(([name, type]) => [
      name,
      { to: type, from: [type], serialize: String, parse: parse(type) },
    ])
    const client = postgres(url, { max: 4, prepare: false, types: Object.fromEntries(own) })
    return { driver: fromPostgresJs(client) as Driver<unknown>, end: () => client.end() }
  },
}

let url: string
let observer: pg.Pool

beforeAll(async () => {
  const database = await testDatabase('installed')
  url = database.url
  observer = new pg.Pool({ connectionString: database.directUrl, max: 3 })
  await observer.query(`
    CREATE TABLE plain (id text PRIMARY KEY, note text NOT NULL DEFAULT '', version int NOT NULL DEFAULT 1);
    CREATE TABLE kept (id text PRIMARY KEY, version int NOT NULL DEFAULT 1);
    CREATE FUNCTION keep() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
    CREATE TRIGGER keep BEFORE UPDATE ON kept FOR EACH ROW EXECUTE FUNCTION keep();
    INSERT INTO plain VALUES ('a'), ('b'), ('c');
    INSERT INTO kept VALUES ('a');
    CREATE TABLE job (id text PRIMARY KEY, status text NOT NULL DEFAULT 'pending', claim_token uuid,
      lease_until timestamptz, attempts int NOT NULL DEFAULT 0)`)
  for (const type of Object.values(types)) pg.types.setTypeParser(type, parse(type))
})
afterAll(async () => await observer.end())

describe.each(Object.entries(clients))('%s', (_, open) => {
  let client: OpenClient
  let hf: Holdfast<unknown>
  beforeAll(async () => {
    client = await open(url)
    hf = createHoldfast(client.driver)
  })
  afterAll(async () => await client.end())
  // Some clients ask the server for themselves when they connect.
  beforeEach(() => parsed.splice(0))

  test('locks are locks', async () => {
    const key = lockKey('odd', fresh())
    await hf.locks.selfTest()
    expect(await hf.guard(key, async () => 'held')).toBe('held')
    await hf.transaction(async (tx) => {
      await hf.locks.acquire(tx, [key, lockKey('odd', fresh())])
      await hf.locks.assertHeld(tx, key)
    })
    const isHeld = deferred<void>()
    const mayEnd = deferred<void>()
    const holding = hf.guard(key, async () => {
      isHeld.resolve()
      await mayEnd.promise
    })
    await isHeld.promise
    try {
      const blockers = [{ pid: expect.any(Number), ageMs: expect.any(Number) }]
      const tried = named(await hf.tryGuard(key, async () => 'both'))
      expect(tried).toMatchObject({ ok: false, blockers })
      const late = hf.transaction((tx) => hf.locks.acquire(tx, key, { wait: '20 ms' }))
      expect(named(await errorOf(late))).toMatchObject({ code: 'LOCK_TIMEOUT', blockers })
    } finally {
      mayEnd.resolve()
      await holding
    }
    expect(parsed).toEqual([])
  })

  test('a locked row is skipped, a missing one is missing, a suppressed change is told', async () => {
    const holder = await observer.connect()
    try {
      await holder.query(`BEGIN; SELECT FROM plain WHERE id = 'a' FOR UPDATE`)
      const columns = ['id', 'note']
      await hf.transaction(async (tx) => {
        const some = await hf.rows.lock(tx, 'plain', ['a', 'b', 'z'], { wait: 'skip', columns })
        expect(some).toMatchObject({ missing: ['z'], skipped: ['a'] })
        expect(some.rows).toEqual([{ id: 'b', note: '' }])
        const { rows } = await hf.rows.lock(tx, 'plain', ['c'], { columns })
        expect(rows).toEqual([{ id: 'c', note: '' }])
      })
      const busy = hf.transaction((tx) =>
        hf.rows.lock(tx, 'plain', ['a'], { wait: '20 ms', columns }),
      )
      expect(named(await errorOf(busy))).toMatchObject({
        code: 'ROWS_TIMEOUT',
        blockers: [{ pid: expect.any(Number) }],
      })
    } finally {
      await holder.query('ROLLBACK')
      holder.release()
    }
    const check = { columns: ['id'], work: async () => 1, write: async () => 'written' }
    await expect(hf.rows.withVersionCheck('kept', 'a', check)).rejects.toMatchObject({
      code: 'ROWS_CHANGE_SUPPRESSED',
    })
    expect(await hf.rows.withVersionCheck('plain', 'a', check)).toBe('written')
    expect(parsed).toEqual([])
  })

  test('claims come in order, in a transaction too', async () => {
    await observer.query(
      `DELETE FROM job; INSERT INTO job SELECT 'j' || n FROM pg_catalog.generate_series(0, 9) AS n`,
    )
    const claims = hf.claims({ table: 'job', columns: { attempts: 'attempts' }, select: ['id'] })
    const codes = (await claims.check()).map(({ code }) => code)
    expect(codes).toEqual(['index-missing', 'index-missing'])
    const first = await claims.claim(4)
    expect(first.map(({ row }) => row['id'])).toEqual(['j0', 'j1', 'j2', 'j3'])
    expect(first.map(({ attempt }) => attempt)).toEqual([1, 1, 1, 1])
    await hf.transaction(async (tx) => {
      expect(await claims.claim(tx, 2)).toHaveLength(2)
      expect(await claims.complete(tx, first)).toMatchObject({ lost: [] })
    })
    // Empty: an index over rows that were just changed is not used by whoever began before it was there.
    await observer.query(`TRUNCATE job; CREATE INDEX job_claim ON job (id) WHERE status = 'pending';
      CREATE INDEX job_lease ON job (lease_until) WHERE status = 'claimed'`)
    try {
      expect(await claims.check()).toEqual([])
    } finally {
      await observer.query('DROP INDEX job_claim, job_lease')
    }
    expect(parsed).toEqual([])
  })

  test('work, leases, schedules, steps that run once, and the books', async () => {
    const name = fresh()
    const work = hf.work({ queue: name })
    await work.enqueue({ payload: { n: 1 } })
    const [job] = await work.claim(1)
    expect(job).toMatchObject({ attempt: 1, row: { payload: { n: 1 } } })
    await using lease = await hf.leases.acquire(name, { ttl: '30 s' })
    await hf.transaction((tx) => lease.guard(tx))
    expect(await hf.leases.read(name)).toMatchObject({ state: 'held', token: lease.token })
    const schedule = hf.schedule({
      name,
      guarantee: 'transactional',
      handler: async () => undefined,
    })
    expect(await schedule.runNow()).toMatchObject({ outcome: 'done' })
    const once = (): Promise<unknown> => hf.once(name, async () => ({ paid: true }))
    expect([await once(), await once()]).toMatchObject([
      { result: { paid: true } },
      { result: { paid: true } },
    ])
    const credits = hf.credits({ name: 'odd' })
    await credits.grant(name, 10, { operationId: fresh() })
    expect(await credits.spend(name, 3, { operationId: fresh() })).toMatchObject({ ok: true })
    expect(await credits.balance(name)).toMatchObject({ available: 7 })
    expect(parsed).toEqual([])
  })

  test('who looks sees the same', async () => {
    const { sessions } = await hf.observe.locks()
    expect(sessions.every(({ pid }) => Number.isInteger(pid))).toBe(true)
    const codes = (await examine(client.driver)).map(({ code }) => code)
    expect(codes).not.toContain('locks-are-stubs')
    expect(await inspect(client.driver)).toEqual([])
    expect(parsed).toEqual([])
  })
})
