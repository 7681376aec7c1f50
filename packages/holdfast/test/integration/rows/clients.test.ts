/** The room through every client: the same statements, the client's own transaction. */
import 'reflect-metadata'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import { Pool } from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import type { Driver } from '../../../src/core/driver.ts'
import { fromDrizzle } from '../../../src/drivers/drizzle.ts'
import { fromKysely } from '../../../src/drivers/kysely.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../../src/drivers/postgres-js.ts'
import { fromPrisma } from '../../../src/drivers/prisma.ts'
import { fromTypeOrm } from '../../../src/drivers/typeorm.ts'
import { createRows, type Rows } from '../../../src/entries/rows.ts'
import { runTransaction } from '../../../src/tx/run.ts'
import { PrismaClient } from '../../conformance/prisma/generated/client.ts'
import { testDatabase } from '../../support/database.ts'
import { named } from '../../support/in-time.ts'
import { errorOf } from './open-room.ts'

interface Client {
  driver: Driver<unknown>
  end(): Promise<unknown>
}

const clients: Record<string, (url: string) => Promise<Client>> = {
  async pg(url) {
    const pool = new Pool({ connectionString: url, max: 4 })
    return { driver: fromPg(pool) as Driver<unknown>, end: () => pool.end() }
  },
  async 'postgres.js'(url) {
    const client = postgres(url, { max: 4, prepare: false })
    return { driver: fromPostgresJs(client) as Driver<unknown>, end: () => client.end() }
  },
  async 'postgres.js in camel case'(url) {
    const client = postgres(url, { max: 4, prepare: false, transform: postgres.camel })
    return { driver: fromPostgresJs(client) as Driver<unknown>, end: () => client.end() }
  },
  async prisma(url) {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: 4 }) })
    return { driver: fromPrisma(prisma) as Driver<unknown>, end: () => prisma.$disconnect() }
  },
  async 'drizzle on pg'(url) {
    const pool = new Pool({ connectionString: url, max: 4 })
    return { driver: fromDrizzle(drizzlePg(pool), sql) as Driver<unknown>, end: () => pool.end() }
  },
  async 'drizzle on postgres.js'(url) {
    const client = postgres(url, { max: 4, prepare: false })
    const driver = fromDrizzle(drizzlePostgresJs(client), sql) as Driver<unknown>
    return { driver, end: () => client.end() }
  },
  async 'kysely in camel case'(url) {
    const dialect = new PostgresDialect({ pool: new Pool({ connectionString: url, max: 4 }) })
    const db = new Kysely<unknown>({ dialect, plugins: [new CamelCasePlugin()] })
    return { driver: fromKysely(db) as Driver<unknown>, end: () => db.destroy() }
  },
  async typeorm(url) {
    const source = new DataSource({ type: 'postgres', url, poolSize: 4, logging: false })
    await source.initialize()
    return { driver: fromTypeOrm(source) as Driver<unknown>, end: () => source.destroy() }
  },
}

let url: string
let observer: Pool

beforeAll(async () => {
  const database = await testDatabase()
  url = database.url
  observer = new Pool({ connectionString: database.directUrl, max: 3 })
  await observer.query(`CREATE TABLE "Item" (
    tenant uuid, id int8, name text NOT NULL, doc jsonb, version int NOT NULL DEFAULT 1, PRIMARY KEY (tenant, id))`)
})
afterAll(async () => observer.end())

const tenant = 'a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11'
const key = (id: number | bigint): { tenant: string; id: number | bigint } => ({ tenant, id })
const keyColumns = ['tenant', 'id']

describe.each(Object.keys(clients))('%s', (name) => {
  let client: Client
  let rows: Rows<unknown>
  const transaction = <T>(body: (tx: unknown) => Promise<T>): Promise<T> =>
    runTransaction(client.driver, ({ native }) => body(native), { retry: false })

  beforeAll(async () => {
    client = await (clients[name] as (url: string) => Promise<Client>)(url)
    rows = createRows(client.driver)
  })
  afterAll(async () => client.end())
  afterEach(async () => observer.query('TRUNCATE "Item"'))
  const insert = (): Promise<unknown> =>
    observer.query(
      `INSERT INTO "Item" SELECT '${tenant}', i, 'item ' || i, '{"a": 1}' FROM generate_series(1, 3) AS i`,
    )

  /** Runs the body while another session holds the first item. */
  const whileHeld = async (body: (pid: number) => Promise<void>): Promise<void> => {
    const holder = await observer.connect()
    try {
      await holder.query('BEGIN')
      const { rows: held } = await holder.query<{ pid: number }>(
        'SELECT pg_backend_pid() AS pid FROM "Item" WHERE id = 1 FOR UPDATE',
      )
      await body(held[0]?.pid as number)
    } finally {
      await holder.query('ROLLBACK')
      holder.release()
    }
  }
  const timeouts = async (tx: unknown): Promise<unknown> => {
    const [row] = await client.driver.join(tx).query({
      text: `SELECT current_setting('lock_timeout') || current_setting('statement_timeout') AS both`,
      values: [],
    })
    return row?.['both']
  }

  test.each(['block', 'nowait', 'skip', 500] as const)('locks rows: %s', async (wait) => {
    await insert()
    await transaction(async (tx) => {
      const locked = await rows.lock(tx, 'Item', [key(2), key(9n), key(1)], { keyColumns, wait })
      expect(locked.rows.map(({ name: of, doc, version }) => ({ of, doc, version }))).toEqual([
        { of: 'item 2', doc: { a: 1 }, version: 1 },
        { of: 'item 1', doc: { a: 1 }, version: 1 },
      ])
      expect(locked.missing).toEqual([key(9n)])
      const { rows: free } = await observer.query('SELECT id FROM "Item" FOR UPDATE SKIP LOCKED')
      expect(free).toEqual([{ id: '3' }])
      expect(await timeouts(tx)).toBe('00')
    })
  })

  test('says what is held, by whom, and goes on if asked to', async () => {
    await insert()
    await whileHeld(async (pid) => {
      await transaction(async (tx) => {
        const skip = await rows.lock(tx, 'Item', [key(1), key(2)], { keyColumns, wait: 'skip' })
        expect(skip.skipped).toEqual([key(1)])
        for (const [wait, code] of [
          ['nowait', 'ROWS_BUSY'],
          [50, 'ROWS_TIMEOUT'],
        ] as const) {
          const options = { keyColumns, wait, keepTransaction: true }
          const locking = rows.lock(tx, 'Item', [key(1), key(2)], options)
          expect(named(await errorOf(locking))).toMatchObject({ code, blockers: [{ pid }] })
          const table = { wait, keepTransaction: true }
          const tableLocking = rows.lockTable(tx, 'Item', 'access exclusive', table)
          expect(named(await errorOf(tableLocking))).toMatchObject({ code, blockers: [{ pid }] })
        }
        expect(await timeouts(tx)).toBe('00')
        expect((await rows.lock(tx, 'Item', [key(3)], { keyColumns })).rows).toHaveLength(1)
      })
    })
  })

  test('locks a table with a limit', async () => {
    await transaction(async (tx) => {
      await rows.lockTable(tx, 'Item', 'share row exclusive', { wait: 500 })
      expect(await timeouts(tx)).toBe('00')
    })
  })

  test('changes by version', async () => {
    await insert()
    await transaction(async (tx) => {
      const set = { name: 'new', doc: { list: [1, null, 'x'] } }
      const update = { keyColumns, version: 1, set }
      expect(await rows.updateVersioned(tx, 'Item', key(1), update)).toMatchObject({
        ...set,
        version: 2,
      })
      await expect(rows.updateVersioned(tx, 'Item', key(1), update)).rejects.toMatchObject({
        code: 'ROWS_VERSION_CONFLICT',
        details: { foundVersion: '2' },
      })
    })
  })

  test('checks the version after slow work', async () => {
    await insert()
    const seen: unknown[] = []
    await rows.withVersionCheck<{ name: string; version: number }>('Item', key(1), {
      keyColumns,
      attempts: 2,
      work: async (row, { attempt }) => {
        seen.push(row.name)
        if (attempt === 1)
          await observer.query(`UPDATE "Item" SET name = 'b', version = version + 1`)
      },
      write: async (tx, row) => {
        const { version } = row
        const set = { name: 'c' }
        await rows.updateVersioned(tx, 'Item', key(1), { keyColumns, version, set })
      },
    })
    expect(seen).toEqual(['item 1', 'b'])
    const { rows: now } = await observer.query('SELECT name, version FROM "Item" WHERE id = 1')
    expect(now).toEqual([{ name: 'c', version: 3 }])
  })
})
