import 'reflect-metadata'
import { type PostgresServer, startPostgres, waitUntil } from '@holdfast/testkit'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { Kysely, PostgresDialect } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Driver, SessionDriver } from '../../src/core/driver.ts'
import { fromDrizzle } from '../../src/drivers/drizzle.ts'
import { fromKysely } from '../../src/drivers/kysely.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../src/drivers/postgres-js.ts'
import { fromPrisma } from '../../src/drivers/prisma.ts'
import { hearNotice } from '../../src/drivers/parts/sync-wait.ts'
import { fromTypeOrm } from '../../src/drivers/typeorm.ts'
import { PrismaClient } from './prisma/generated/client.ts'

/**
 * A cancelled wait for the synchronous standby: PostgreSQL answers COMMIT, with a WARNING. Clients that
 * let us hear it end as COMMIT_UNKNOWN. Those that do not are listed as deaf: they are the control, and
 * what docs/faults.md says about them.
 */

interface Opened {
  readonly driver: Driver<unknown>
  end(): Promise<unknown>
}
type Open = (url: string) => Promise<Opened>

const opened = <Tx>(driver: Driver<Tx>, end: () => Promise<unknown>): Opened => ({
  driver: driver as Driver<unknown>,
  end,
})
const poolTo = (url: string): pg.Pool => new pg.Pool({ connectionString: url, max: 3 })
const ignored = (): void => undefined

const hearing: Readonly<Record<string, Open>> = {
  async pg(url) {
    const pool = poolTo(url)
    return opened(fromPg(pool), () => pool.end())
  },
  async 'pg, never prepared'(url) {
    const pool = poolTo(url)
    return opened(fromPg(pool, { prepare: 'never' }), () => pool.end())
  },
  async 'postgres.js with onnotice'(url) {
    const client = postgres(url, { max: 3, onnotice: hearNotice })
    return opened(fromPostgresJs(client), () => client.end())
  },
  async 'drizzle on pg'(url) {
    const pool = poolTo(url)
    return opened(fromDrizzle(drizzlePg(pool), sql), () => pool.end())
  },
  async 'drizzle on postgres.js with onnotice'(url) {
    const client = postgres(url, { max: 3, onnotice: hearNotice })
    return opened(fromDrizzle(drizzlePostgresJs(client), sql), () => client.end())
  },
  async typeorm(url) {
    const source = new DataSource({ type: 'postgres', url, poolSize: 3, logging: false })
    await source.initialize()
    return opened(fromTypeOrm(source), () => source.destroy())
  },
  async 'prisma on a pool'(url) {
    const pool = poolTo(url)
    const prisma = new PrismaClient({ adapter: new PrismaPg(pool) })
    return opened(fromPrisma(prisma), async () => {
      await prisma.$disconnect()
      await pool.end()
    })
  },
  async 'kysely with its pool'(url) {
    const pool = poolTo(url)
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
    return opened(fromKysely(db, { pool }), () => db.destroy())
  },
}

const deaf: Readonly<Record<string, Open>> = {
  async 'postgres.js without onnotice'(url) {
    const client = postgres(url, { max: 3, onnotice: ignored })
    return opened(fromPostgresJs(client), () => client.end())
  },
  async 'prisma on a pool of its own making'(url) {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 3 }) })
    return opened(fromPrisma(prisma), () => prisma.$disconnect())
  },
  async 'kysely without its pool'(url) {
    const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool: poolTo(url) }) })
    return opened(fromKysely(db), () => db.destroy())
  },
}

let primary: PostgresServer
let standby: PostgresServer
let receiver: number
let admin: pg.Pool

beforeAll(async () => {
  primary = await startPostgres()
  admin = new pg.Pool({ connectionString: primary.url(), options: '-c synchronous_commit=local' })
  admin.on('error', ignored)
  await admin.query('CREATE TABLE written (id text PRIMARY KEY)')
  standby = await primary.standby()
  await admin.query(`ALTER SYSTEM SET synchronous_standby_names = '*'`)
  await admin.query('SELECT pg_reload_conf()')
  await waitUntil('the standby is synchronous', async () => {
    const { rows } = await admin.query(
      `SELECT FROM pg_stat_replication WHERE sync_state = 'sync' AND replay_lsn = sent_lsn`,
    )
    return rows.length === 1 || undefined
  })
  receiver = await receiverOf(standby)
  process.kill(receiver, 'SIGSTOP')
})

afterAll(async () => {
  await admin.end()
  await primary.stop('immediate')
  await standby.stop('immediate')
})

async function receiverOf(server: PostgresServer): Promise<number> {
  const client = new pg.Client({ connectionString: server.url() })
  await client.connect()
  const { rows } = await client.query<{ pid: number }>('SELECT pid FROM pg_stat_wal_receiver')
  await client.end()
  return rows[0]?.pid as number
}

/** Waits until somebody waits for the standby, and cancels that wait. */
async function cancelWait(): Promise<void> {
  await waitUntil('a commit waits for the standby, and is cancelled', async () => {
    const { rows } = await admin.query(
      `SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`,
    )
    return rows.length > 0 || undefined
  })
}

const insert = (id: string) => ({
  text: 'INSERT INTO written VALUES ($1::text) RETURNING id AS answer',
  values: [id],
})

const ways: Readonly<Record<string, (driver: Driver<unknown>, id: string) => Promise<unknown>>> = {
  'COMMIT of a transaction': async (driver, id) =>
    await driver.transaction(async (transaction) => await transaction.query(insert(id)), {
      scopes: [],
    }),
  'a statement of its own': async (driver, id) => await driver.alone.query(insert(id)),
}

/** Those of `fromPg` that go over the wire by messages of our own. */
const onTheWire: typeof ways = {
  'a statement whose columns are known': async (driver, id) =>
    await driver.alone.query({ ...insert(id), columns: ['answer'] }),
  'a statement that is prepared': async (driver, id) => {
    const look = {
      text: 'SELECT pg_backend_pid()::text AS pid',
      values: [],
      name: 'p',
      columns: ['pid'],
    }
    for (let uses = 0; uses < 2; uses += 1) await driver.alone.query(look)
    await driver.alone.query({ ...insert(id), name: 'insert' })
  },
  'a transaction with an opening': async (driver, id) =>
    await driver.transaction(async (_, sent) => await sent, {
      scopes: [],
      opening: () => ({ ...insert(id), columns: ['answer'] }),
    }),
  'a session': async (driver, id) => {
    const session = await (driver as SessionDriver<unknown>).session()
    try {
      await session.query(insert(id))
    } finally {
      await session.end()
    }
  },
}

async function cancelled(
  open: Open,
  way: (driver: Driver<unknown>, id: string) => Promise<unknown>,
  id: string,
): Promise<unknown> {
  const { driver, end: close } = await open(primary.url())
  try {
    const outcome = way(driver, id).then(
      () => 'told that it was committed',
      (error: unknown) => error,
    )
    await cancelWait()
    return await outcome
  } finally {
    await close()
  }
}

async function isHere(id: string): Promise<boolean> {
  const { rows } = await admin.query('SELECT FROM written WHERE id = $1', [id])
  return rows.length === 1
}

const unknown = { code: 'COMMIT_UNKNOWN', name: 'UnknownOutcomeError' }

describe.each(Object.entries(hearing))('%s', (client, open) => {
  test.each(Object.entries(ways))('%s: COMMIT_UNKNOWN', async (name, way) => {
    const id = `${client}: ${name}`
    expect(await cancelled(open, way, id)).toMatchObject(unknown)
    expect(await isHere(id)).toBe(true)
  })
})

describe('pg, on the wire', () => {
  test.each(Object.entries(onTheWire))('%s: COMMIT_UNKNOWN', async (name, way) => {
    expect(await cancelled(hearing['pg'] as Open, way, name)).toMatchObject(unknown)
  })
})

describe.each(Object.entries(deaf))('control and limit: %s', (client, open) => {
  test.each(Object.entries(ways))('%s is told to have happened', async (name, way) => {
    const id = `${client}: ${name}`
    expect(await cancelled(open, way, id)).toBe('told that it was committed')
  })
})

test('a connection that hears of one is fit for the next', async () => {
  const pool = new pg.Pool({ connectionString: primary.url(), max: 1 })
  const driver = fromPg(pool)
  const outcome = driver.alone.query(insert('first')).catch((error: unknown) => error)
  await cancelWait()
  expect(await outcome).toMatchObject(unknown)
  const one = { text: 'SELECT 1 AS one', values: [] }
  await expect(driver.alone.query(one)).resolves.toEqual([{ one: 1 }])
  await pool.end()
})

test('why: when the standby takes over, what was cancelled is gone', async () => {
  expect(await isHere('pg: COMMIT of a transaction')).toBe(true)
  await primary.stop('immediate')
  // What it had received and not written dies with it; the standby starts its processes again.
  process.kill(receiver, 'SIGKILL')
  await waitUntil('the standby takes over', async () => {
    return await standby.promote().then(() => true as const, ignored)
  })
  const client = new pg.Client({ connectionString: standby.url() })
  await client.connect()
  const { rows } = await client.query('SELECT count(*)::int AS kept FROM written')
  await client.end()
  expect(rows).toEqual([{ kept: 0 }])
})
