/**
 * Somebody begins a transaction on a connection of the pool and gives the connection back without ending it. Whoever gets
 * it next would save what is in there, or be told "saved" of what is lost with it. Nothing of ours runs on it, whatever
 * room it is of, and nothing that was left there is saved: the connection is closed.
 */
import 'reflect-metadata'
import { MikroORM, type SqlEntityManager } from '@mikro-orm/postgresql'
import { PrismaPg } from '@prisma/adapter-pg'
import { sample, waitUntil } from '@holdfast/testkit'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import knexOf from 'knex'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import { Sequelize } from 'sequelize'
import { DataSource } from 'typeorm'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromDrizzle } from '../../../src/drivers/drizzle.ts'
import { fromKnex } from '../../../src/drivers/knex.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromMikroOrm } from '../../../src/drivers/mikro-orm.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { fromSequelize } from '../../../src/drivers/sequelize.ts'
import { fromTypeOrm } from '../../../src/drivers/typeorm.ts'
import { createHoldfast, type Holdfast, lockKey } from '../../../src/index.ts'
import { PrismaClient } from '../../conformance/prisma/generated/client.ts'
import { fresh, ledgerFixture } from '../../support/ledger-fixture.ts'

const fixture = ledgerFixture('CREATE TABLE note (words text)')

/** A client with one connection, and a way for a stranger to send something on it. */
interface Client {
  readonly driver: Driver<unknown>
  send(text: string): Promise<unknown>
  end(): Promise<unknown>
}

const opened = <Tx>(driver: Driver<Tx>, rest: Omit<Client, 'driver'>): Client => ({
  driver: driver as Driver<unknown>,
  ...rest,
})

/** Takes the connection of a pool, and gives it back as it is then. */
const on =
  (pool: pg.Pool) =>
  async (text: string): Promise<void> => {
    const client = await pool.connect()
    try {
      await client.query(text)
    } finally {
      client.release()
    }
  }

/** As it was before it kept what the server says of its transaction. */
class OlderClient extends pg.Client {
  override getTransactionStatus = undefined as never
}

const onPool =
  (driverOn: (pool: pg.Pool) => Driver<unknown>, options: pg.PoolConfig = {}) =>
  async (url: string): Promise<Client> => {
    const pool = new pg.Pool({ connectionString: url, max: 1, ...options })
    pool.on('error', () => undefined)
    return opened(driverOn(pool), { send: on(pool), end: () => pool.end() })
  }

const clients: Readonly<Record<string, (url: string) => Promise<Client>>> = {
  pg: onPool((pool) => fromPg(pool) as Driver<unknown>),
  'pg, nothing prepared': onPool((pool) => fromPg(pool, { prepare: 'never' }) as Driver<unknown>),
  'an older pg': onPool((pool) => fromPg(pool) as Driver<unknown>, { Client: OlderClient }),
  'drizzle on pg': onPool((pool) => fromDrizzle(drizzle(pool), sql) as Driver<unknown>),
  kysely: onPool(
    (pool) => fromKysely(new Kysely({ dialect: new PostgresDialect({ pool }) }), { pool }) as never,
  ),
  prisma: onPool(
    (pool) => fromPrisma(new PrismaClient({ adapter: new PrismaPg(pool) })) as Driver<unknown>,
  ),
  async typeorm(url) {
    const source = new DataSource({ type: 'postgres', url, poolSize: 1, logging: false })
    await source.initialize()
    const { master } = source.driver as unknown as { readonly master: pg.Pool }
    return opened(fromTypeOrm(source), { send: on(master), end: () => source.destroy() })
  },
  async 'mikro-orm'(clientUrl) {
    const orm = await MikroORM.init({
      clientUrl,
      entities: [],
      discovery: { warnWhenNoEntities: false },
      pool: { min: 0, max: 1 },
      logger: () => undefined,
    })
    const pool = (await orm.em.getConnection().getNativeClient()) as unknown as pg.Pool
    const driver = fromMikroOrm(orm.em as SqlEntityManager)
    return opened(driver, { send: on(pool), end: () => orm.close() })
  },
  async knex(url) {
    const log = { warn: () => undefined }
    const knex = knexOf({ client: 'pg', connection: url, pool: { min: 0, max: 1 }, log })
    const send = async (text: string): Promise<unknown> => await knex.raw(text)
    return opened(fromKnex(knex), { send, end: () => knex.destroy() })
  },
  async sequelize(url) {
    const sequelize = new Sequelize(url, { logging: false, pool: { max: 1 } })
    await sequelize.authenticate()
    const send = (text: string): Promise<unknown> => sequelize.query(text)
    return opened(fromSequelize(sequelize), { send, end: () => sequelize.close() })
  },
}

type Hf = Holdfast<unknown>
const once = (): { readonly operationId: string } => ({ operationId: fresh() })

/** What every room does on a connection of its own. */
const ways: Readonly<Record<string, (hf: Hf, name: string) => Promise<unknown>>> = {
  'a guard': (hf, name) => hf.guard(lockKey('k', name), async () => 'in'),
  'a transaction': (hf) => hf.transaction(async () => 'in', { isolation: 'serializable' }),
  'a quota': (hf, name) => hf.quota({ name, per: 'lifetime', limit: 9 }).consume('k', 1, once()),
  'a limit': (hf, name) => hf.rateLimit({ name, per: 'day', limit: 9 }).consume('k'),
  credits: (hf, name) => hf.credits({ name }).grant('k', 1, once()),
  'work that is added': (hf, name) => hf.work({ queue: name }).enqueue({ payload: name }),
  'work that is claimed': (hf, name) => hf.work({ queue: name }).claim(1),
  'a lease': (hf, name) => hf.leases.acquire(name),
  once: (hf, name) => hf.once(name, async () => 'ran'),
  'a schedule': (hf, name) =>
    hf
      .schedule({
        name,
        cron: '0 0 * * 1',
        guarantee: 'at-least-once',
        handler: async () => undefined,
      })
      .fireAt(new Date('2026-01-05T00:00:00Z')),
  'what is observed': (hf) => hf.observe.locks(),
}

const leaks = {
  'one that wrote': ['BEGIN', `INSERT INTO note VALUES ('left')`],
  'one that has failed': ['BEGIN', 'SELECT 1/0'],
}

/** What strangers have left there is neither saved nor kept open. */
async function assertGone(): Promise<void> {
  await waitUntil('no transaction is open', async () => {
    const { rows } = await fixture.observer.query<{ open: number }>(
      `SELECT count(*)::int AS open FROM pg_stat_activity
       WHERE datname = current_database() AND state LIKE 'idle in transaction%'`,
    )
    return rows[0]?.open === 0 ? true : undefined
  })
  expect((await fixture.observer.query('SELECT words FROM note')).rows).toEqual([])
}

describe.each(sample(Object.entries(clients)))('%s', (_, open) => {
  let client: Client
  let hf: Hf
  beforeAll(async () => {
    client = await open(fixture.database.url)
    hf = createHoldfast(client.driver)
    // What an older client has been told of a connection counts from the first time that we see it.
    await hf.transaction(async () => undefined)
  })
  afterAll(async () => await client.end())

  describe.each(Object.entries(leaks))('%s', (_leak, texts) => {
    test.each(Object.entries(ways))('%s is refused, and then runs', async (_way, run) => {
      const name = fresh()
      for (const text of texts) await client.send(text).catch(() => undefined)
      await expect(run(hf, name)).rejects.toMatchObject({
        code: 'TX_SESSION_SHARED',
        details: {
          subject: expect.stringMatching(/nothing was done.* release\(\) without COMMIT/),
        },
      })
      await assertGone()
      await run(hf, name)
    })
  })
})

describe('pg: a BEGIN that nobody awaited before the connection was given back', () => {
  async function leaked(): Promise<Hf> {
    const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
    onTestFinished(() => pool.end())
    const hf = createHoldfast(fromPg(pool)) as unknown as Hf
    const client = await pool.connect()
    void client.query('BEGIN')
    void client.query(`INSERT INTO note VALUES ('left')`)
    client.release()
    return hf
  }

  test.each(Object.entries(ways))('%s', async (_way, run) => {
    const hf = await leaked()
    await expect(run(hf, fresh())).rejects.toMatchObject({ code: 'TX_SESSION_SHARED' })
    await assertGone()
    await run(hf, fresh())
  })
})

test('control: a pool hands out what was left open, and the next COMMIT saves it', async () => {
  const pool = new pg.Pool({ connectionString: fixture.database.url, max: 1 })
  onTestFinished(async () => {
    await pool.end()
    await fixture.observer.query('DELETE FROM note')
  })
  for (const text of leaks['one that wrote']) await on(pool)(text)
  await pool.query('BEGIN')
  await pool.query('COMMIT')
  expect((await fixture.observer.query('SELECT words FROM note')).rows).toEqual([{ words: 'left' }])
})
