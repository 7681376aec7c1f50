/**
 * Every room in a database where every operator, function, type and catalogue that we use has a double that is found
 * first. The doubles refuse statements of ours, see `hostile-database.ts`.
 */
import { createDatabase, waitUntilBlocked, withClient } from '@holdfast/testkit'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, inject, test } from 'vitest'
import type { Statement } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { lockHolders } from '../../../src/engines/postgres/locks/lock-holders.ts'
import {
  rowLockHolders,
  rowShareHolders,
  tableLockHolders,
} from '../../../src/engines/postgres/rows/row-blockers.ts'
import { examine } from '../../../src/health/index.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { inspect, migrate, plan } from '../../../src/schema/index.ts'
import { everything, setAgainst, setTraps, sprung } from '../../support/hostile-database.ts'

let pool: pg.Pool
let hf: Holdfast<pg.PoolClient>

const tables = `
CREATE EXTENSION citext;
CREATE TABLE document (id varchar(20) PRIMARY KEY, body text, version bigint NOT NULL DEFAULT 1);
INSERT INTO document (id) VALUES ('one'), ('two');
CREATE TABLE member (name citext PRIMARY KEY, visits int NOT NULL DEFAULT 0, version int NOT NULL DEFAULT 1);
INSERT INTO member VALUES ('Ada'), ('Bob');
CREATE TABLE job (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, tenant citext NOT NULL, status text NOT NULL DEFAULT 'pending',
  claim_token uuid, lease_until timestamptz, run_at timestamptz NOT NULL DEFAULT now(), attempts int, error text,
  priority int NOT NULL DEFAULT 0
);
INSERT INTO job (tenant) SELECT 'Tenant ' || n % 3 FROM generate_series(1, 30) n;
INSERT INTO job (tenant) VALUES ('tenant 1')`

beforeAll(async () => {
  const url = await createDatabase(inject('postgresUrl'))
  await withClient(url, (client) => client.query(tables))
  await setTraps(url, everything)
  await setAgainst(url)
  pool = new pg.Pool({ connectionString: url, max: 8 })
  const driver = fromPg(pool)
  await migrate(driver)
  hf = createHoldfast(driver)
})
afterAll(() => pool.end())

/** A session that keeps something locked until it is told. */
async function holding(sql: string): Promise<{ release(): Promise<void> }> {
  const client = await pool.connect()
  await client.query('BEGIN')
  await client.query(sql)
  return {
    release: async () => {
      await client.query('ROLLBACK')
      client.release()
    },
  }
}

describe('S1: whatever others have made', () => {
  test('locks', async () => {
    const keys = [lockKey('a', 1), lockKey('b', 2)]
    expect(await hf.guard(keys, async () => 'in')).toBe('in')
    await hf.transaction(async (tx) => {
      await hf.locks.acquire(tx, lockKey('a', 1))
      await hf.locks.assertHeld(tx, lockKey('a', 1))
    })
    const other = createHoldfast(fromPg(pool))
    await hf.guard(lockKey('a', 1), async () => {
      const late = other.guard(lockKey('a', 1), async () => undefined, { wait: 50 })
      await expect(late).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' })
    })
  })

  test('rows, by varchar and by citext, which has an equality of its own', async () => {
    await hf.transaction(async (tx) => {
      const lock = (keys: string[], keyColumns: string[], table: string): Promise<unknown> =>
        hf.rows.lock(tx, table, keys, { keyColumns }).then(({ rows }) => rows.length)
      expect(await lock(['one'], ['id'], 'document')).toBe(1)
      expect(await lock(['two', 'one', 'three'], ['id'], 'document')).toBe(2)
      expect(await lock(['ADA'], ['name'], 'member')).toBe(1)
      expect(await lock(['ada', 'BOB'], ['name'], 'member')).toBe(2)
    })
    await hf.transaction(async (tx) => {
      await hf.rows.updateVersioned(tx, 'document', 'one', { version: 1, set: { body: 'new' } })
      const ada = { keyColumns: ['name'], version: 1, set: { visits: 2 } }
      expect(await hf.rows.updateVersioned(tx, 'member', 'aDA', ada)).toMatchObject({ visits: 2 })
    })
    const write = async (): Promise<string> => 'written'
    const check = { work: async () => 1, write, keyColumns: ['name'] }
    expect(await hf.rows.withVersionCheck('member', 'bob', check)).toBe('written')
  })

  // What asks for them holds errors back: an error is told without their names rather than not at all.
  test('who is in the way of locks, rows and tables', async () => {
    const asked = async ({ text, values }: Statement): Promise<number> =>
      (await pool.query(text, [...values])).rows.length
    const target = { table: { table: 'document' }, keyColumns: ['id'] }
    const [one, waiter] = ['[{"id":"two"}]', { waitedMs: 5, pid: undefined, hasTable: false }]
    const held = await holding("SELECT FROM document WHERE id = 'two' FOR UPDATE")
    expect(await asked(tableLockHolders(target.table, 'exclusive', waiter))).toBe(1)
    expect(await asked(rowLockHolders(target, one, waiter))).toBe(1)
    await held.release()
    const shared = await Promise.all(
      [1, 2].map(() => holding("SELECT FROM document WHERE id = 'two' FOR SHARE")),
    )
    expect(await asked(rowShareHolders(target, one, 'update', waiter))).toBe(2)
    await Promise.all(shared.map((each) => each.release()))
    const key = lockKey('a', 1)
    await hf.guard(key, async () => {
      expect(await asked(lockHolders([{ key, mode: 'exclusive' }], 5))).toBe(1)
    })
  })

  test('claims, with turns by a citext', async () => {
    const columns = { attempts: 'attempts', runAt: 'run_at', error: 'error', priority: 'priority' }
    const jobs = hf.claims({ table: 'job', columns, perKey: { column: 'tenant', limit: 5 } })
    expect((await jobs.check()).filter(({ code }) => code !== 'index-missing')).toEqual([])
    const claimed = await jobs.claim(30)
    const perTenant = Map.groupBy(claimed, ({ row }) => String(row['tenant']).toLowerCase())
    // One and the same tenant in whatever case.
    expect([...perTenant.values()].map((rows) => rows.length)).toEqual([5, 5, 5])
    expect((await jobs.heartbeat(claimed)).lost).toEqual([])
    expect((await jobs.complete(claimed.slice(0, 5))).kept).toHaveLength(5)
    expect((await jobs.release(claimed.slice(5, 9))).kept).toHaveLength(4)
    expect((await jobs.fail(claimed.slice(9), { error: 'no' })).kept).toHaveLength(6)
    expect(await jobs.recover()).toEqual({ freed: 0, dead: 0 })
    expect((await jobs.dead.list()).rows).toEqual([])
    const taken = hf.claims({ table: 'job', mode: 'transaction' })
    await hf.transaction(async (tx) => taken.finish(tx, await taken.take(tx, 2)))
    const work = hf.work({ queue: 'q' })
    await work.enqueue([{ payload: 1 }])
    expect((await work.complete(await work.claim(1))).kept).toHaveLength(1)
  })

  test('the ledger', async () => {
    const quota = hf.quota({ name: 'calls', limit: 10, per: 'day', timeZone: 'America/Santiago' })
    const many = Array.from({ length: 30 }, (_, at) =>
      quota.consume(`k${at % 2}`, 1, { operationId: `o${at}` }),
    )
    expect((await Promise.all(many)).filter(({ ok }) => ok)).toHaveLength(20)
    const credits = hf.credits({ name: 'credits' })
    await credits.grant('k', 5, { operationId: 'g', expiresIn: '1 h' })
    expect(await credits.spend('k', 3, { operationId: 's' })).toMatchObject({ ok: true })
    const hold = await credits.hold('k', 1, { operationId: 'h', ttl: '1 h' })
    expect(hold).toMatchObject({ ok: true })
    expect(await credits.balance('k')).toMatchObject({ available: 1 })
    await hf.ledger.maintain()
    expect((await hf.ledger.audit()).found).toBe(0)
    expect((await hf.ledger.history('calls', 'k0')).movements).not.toHaveLength(0)
  })

  test('leases, once, schedules', async () => {
    const lease = await hf.leases.acquire('n')
    await hf.transaction(async (tx) => await lease.guard(tx))
    await lease.release()
    expect(await hf.once('k', async () => 1)).toMatchObject({ result: 1 })
    const schedule = hf.schedule({
      name: 's',
      every: '1 h',
      guarantee: 'at-least-once',
      handler: async () => undefined,
    })
    expect(await schedule.runNow()).toMatchObject({ outcome: 'done' })
  })

  test('looks: who blocks whom, and how everything stands', async () => {
    const first = await holding('SELECT pg_catalog.pg_advisory_xact_lock(1)')
    const waiting = await pool.connect()
    const { rows } = await waiting.query<{ pid: number }>(
      'SELECT pg_catalog.pg_backend_pid() AS pid',
    )
    const blocked = waiting.query('SELECT pg_catalog.pg_advisory_xact_lock(1)')
    await waitUntilBlocked(pool, rows[0]?.pid as number)
    const { sessions } = await hf.observe.locks()
    expect(sessions.filter(({ blockedBy }) => blockedBy.length > 0)).toHaveLength(1)
    await hf.observe.transactions()
    await first.release()
    await blocked
    waiting.release()
    await hf.observe.books()
    await hf.observe.account({ book: 'calls', key: 'k0' })
    await hf.observe.keys('calls')
    await hf.observe.usage({ book: 'calls', key: 'k0' })
    await hf.observe.followers()
    await hf.observe.holds()
    await hf.observe.leases()
    await hf.observe.schedules()
    await hf.observe.names()
    await hf.observe.lockMinutes()
    await hf.observe.claims()
  })

  test('the schema: installed, planned, inspected, examined', async () => {
    const driver = fromPg(pool)
    expect(await inspect(driver)).toEqual([])
    await pool.query(plan({ schema: 'planned' }))
    expect(await inspect(driver, { schema: 'planned' })).toEqual([])
    const claims = [{ table: 'job' }]
    const found = await examine(driver, { claims })
    expect(found.filter(({ group }) => group === 'schema')).toEqual([])
  })

  test('control: a statement that forgets a schema is refused', async () => {
    const careless = pool.query("SELECT 1 + 2, '3'::pg_catalog.text")
    await expect(careless).rejects.toMatchObject({ code: sprung })
    expect((await pool.query('SELECT 1 + 2 AS sum')).rows).toEqual([{ sum: 3 }])
  })
})
