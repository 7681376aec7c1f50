import { drizzle } from 'drizzle-orm/node-postgres'
import { sql } from 'drizzle-orm'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { DataSource } from 'typeorm'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { RootClientEvent } from '../../../src/core/events/event-map.ts'
import { fromDrizzle } from '../../../src/drivers/drizzle.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromTypeOrm } from '../../../src/drivers/typeorm.ts'
import { createHoldfast, lockKey } from '../../../src/index.ts'
import { callerTransaction, eventsOn, pgFixture } from '../../support/pg-fixture.ts'

const fixture = pgFixture()
const channel = 'holdfast:tx.root-client'

function ownPool(): pg.Pool {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 4 })
  onTestFinished(async () => await pool.end())
  return pool
}

/** Runs `use` in a body of each client that sits on this pool. */
const clients = {
  pg: (pool: pg.Pool, use: () => Promise<unknown>) =>
    createHoldfast(fromPg(pool)).transaction(async () => await use()),
  drizzle: (pool: pg.Pool, use: () => Promise<unknown>) =>
    createHoldfast(fromDrizzle(drizzle(pool), sql)).transaction(async () => await use()),
  kysely: (pool: pg.Pool, use: () => Promise<unknown>) =>
    createHoldfast(
      fromKysely(new Kysely({ dialect: new PostgresDialect({ pool }) }), { pool }),
    ).transaction(async () => await use()),
}

describe.each(Object.entries(clients))('%s: the root client in a body', (name, run) => {
  test('T1: is told, with the place', async () => {
    const pool = ownPool()
    const events = eventsOn<RootClientEvent>(channel)
    await run(pool, async () => await pool.query('SELECT 1'))
    expect(events).toMatchObject([{ thrown: false, error: { code: 'TX_ROOT_CLIENT' } }])
    expect(events[0]?.client).toContain(name)
    expect(events[0]?.error.stack).toContain('root-client.test.ts')
  })

  test('control: another pool, and code outside of the body, are nobody’s business', async () => {
    const pool = ownPool()
    const events = eventsOn<RootClientEvent>(channel)
    await run(pool, async () => await fixture.pool.query('SELECT 1'))
    await pool.query('SELECT 1')
    expect(events).toEqual([])
  })
})

test.each(['before', 'after'])(
  'TypeORM: its pool is watched, connected %s Holdfast is made',
  async (when) => {
    const source = new DataSource({ type: 'postgres', url: fixture.database.url })
    onTestFinished(async () => await source.destroy())
    if (when === 'before') await source.initialize()
    const hf = createHoldfast(fromTypeOrm(source), { tx: { rootClient: 'throw' } })
    if (when === 'after') await source.initialize()
    const used = hf.transaction(async () => (await source.query('SELECT 1')) as unknown)
    await expect(used).rejects.toThrow('TX_ROOT_CLIENT')
    const events = eventsOn<RootClientEvent>(channel)
    const told = createHoldfast(fromTypeOrm(source), { tx: { rootClient: 'report' } })
    await told.transaction(async () => (await source.query('SELECT 1')) as unknown)
    expect(events).toMatchObject([{ thrown: false, client: 'typeorm' }])
  },
)

test('T1: in development it is refused, by promise and by callback', async () => {
  const pool = ownPool()
  const { NODE_ENV } = process.env
  process.env['NODE_ENV'] = 'development'
  onTestFinished(() => {
    process.env['NODE_ENV'] = NODE_ENV
  })
  const hf = createHoldfast(fromPg(pool))
  await hf.transaction(async () => {
    await expect(pool.query('SELECT 1')).rejects.toMatchObject({ code: 'TX_ROOT_CLIENT' })
    await expect(pool.connect()).rejects.toMatchObject({ code: 'TX_ROOT_CLIENT' })
    const heard = await new Promise((resolve) => {
      pool.connect((error) => resolve(error))
    })
    expect(heard).toMatchObject({ code: 'TX_ROOT_CLIENT' })
  })
  await expect(pool.query('SELECT 1 AS one')).resolves.toMatchObject({ rows: [{ one: 1 }] })
})

test('who means it may allow it', async () => {
  const pool = ownPool()
  const events = eventsOn<RootClientEvent>(channel)
  const hf = createHoldfast(fromPg(pool), { tx: { rootClient: 'allow' } })
  await hf.transaction(async () => await pool.query('SELECT 1'))
  expect(events).toEqual([])
})

test('what Holdfast itself asks beside a body is not reported', async () => {
  const pool = ownPool()
  const events = eventsOn<RootClientEvent>(channel)
  const hf = createHoldfast(fromPg(pool), { tx: { rootClient: 'throw' } })
  const holder = await callerTransaction(fixture)
  await fixture.hf.locks.acquire(holder, lockKey('root', 1))
  const refused = await hf
    .transaction(async (tx) => await hf.locks.acquire(tx, lockKey('root', 1), { waitMs: 20 }))
    .catch((error: unknown) => error)
  expect(refused).toMatchObject({ code: 'LOCK_TIMEOUT' })
  expect((refused as { blockers: unknown[] }).blockers).toHaveLength(1)
  expect(events).toEqual([])
})

test('a choice that is none is refused', () => {
  const options = { tx: { rootClient: 'bogus' as 'allow' } }
  expect(() => createHoldfast(fromPg(fixture.pool), options)).toThrow(/tx\.rootClient must be/)
})
