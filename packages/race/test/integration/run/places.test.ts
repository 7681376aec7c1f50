import { PrismaPg } from '@prisma/adapter-pg'
import { withClient } from '@holdfast/testkit'
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import { beforeAll, describe, expect, test } from 'vitest'
import { testDatabase } from '../../../../holdfast/test/support/database.ts'
import type { Step } from '../../../src/core/model.ts'
import { explore } from '../../../src/explore.ts'
import type { Flow } from '../../../src/run/options.ts'
import { PrismaClient } from '../articles/prisma/generated/client.ts'

let url: string
beforeAll(async () => {
  url = (await testDatabase()).directUrl
  await withClient(url, (client) => client.query('CREATE TABLE page (id int PRIMARY KEY, n int)'))
})

/** The statement, with the line on which this is called in a comment. */
function here(sql: string): string {
  const frame = new Error('here').stack?.split('\n')[2] ?? ''
  return `${sql} /* line ${/:(\d+):\d+\)?$/.exec(frame)?.[1] ?? ''} */`
}

const read = 'SELECT n FROM page WHERE id = 1'
const write = (row: unknown): string =>
  `UPDATE page SET n = ${Number((row as { n: number }).n) - 1} WHERE id = 1`

/** The statements that the failing run shows, with the line that they name and the one that was found. */
async function linesOf(flow: Flow): Promise<(readonly [said: string, found: string])[]> {
  const { verdict, failure } = await explore({
    url,
    seed: async ({ query }) => {
      await query('TRUNCATE page')
      await query('INSERT INTO page VALUES (1, 5)')
    },
    flows: { a: flow, b: flow },
  })
  expect(verdict).toBe('race')
  return (failure?.run.steps ?? []).flatMap((step: Step) => {
    const said = /\/\* line (\d+) \*\//.exec(step.statements.join())?.[1]
    if (said === undefined || step.half === 'commit') return []
    const { file = '', line } = step.from ?? {}
    return [[said, file.endsWith('/places.test.ts') ? String(line) : file] as const]
  })
}

const clients: Readonly<Record<string, Flow>> = {
  async 'pg, a pool'({ pool }) {
    const { rows } = await pool.query(here(read))
    await pool.query(here(write(rows[0])))
  },
  async 'pg, a client'({ pool }) {
    const client = await pool.connect()
    await client.query('BEGIN')
    const { rows } = await client.query(here(read))
    await client.query(here(write(rows[0])))
    await client.query('COMMIT')
    client.release()
  },
  drizzle: async ({ pool }) =>
    await drizzle(pool).transaction(async (tx) => {
      const { rows } = await tx.execute(drizzleSql.raw(here(read)))
      await tx.execute(drizzleSql.raw(here(write(rows[0]))))
    }),
  async kysely({ pool }) {
    const db = new Kysely({ dialect: new PostgresDialect({ pool }) })
    await db.transaction().execute(async (tx) => {
      const { rows } = await kyselySql.raw(here(read)).execute(tx)
      await kyselySql.raw(here(write(rows[0]))).execute(tx)
    })
  },
  async prisma({ url: address }) {
    const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: address }) })
    await prisma.$transaction(async (tx) => {
      const rows = await tx.$queryRawUnsafe<unknown[]>(here(read))
      await tx.$executeRawUnsafe(here(write(rows[0])))
    })
    await prisma.$disconnect()
  },
  async 'postgres.js'({ url: address }) {
    const sql = postgres(address)
    await sql.begin(async (tx) => {
      const rows = await tx.unsafe(here(read))
      await tx.unsafe(here(write(rows[0])))
    })
    await sql.end()
  },
  async typeorm({ url: address }) {
    const source = await new DataSource({ type: 'postgres', url: address }).initialize()
    await source.transaction(async (em) => {
      const rows = await em.query<unknown[]>(here(read))
      await em.query(here(write(rows[0])))
    })
    await source.destroy()
  },
}

describe('every statement of a race names the line that sent it', () => {
  test.each(Object.entries(clients))('%s', async (_, flow) => {
    const lines = await linesOf(flow)
    expect(lines).toHaveLength(4)
    for (const [said, found] of lines) expect(found).toBe(said)
  })
})

test('also on connections that were opened long before', async () => {
  const kept = new Map<string, postgres.Sql>()
  const lines = await linesOf(async ({ flow, url: address }) => {
    const sql = kept.get(flow) ?? postgres(address)
    kept.set(flow, sql)
    const rows = await sql.unsafe(here(read))
    await sql.unsafe(here(write(rows[0])))
  })
  expect(lines).toHaveLength(4)
  for (const [said, found] of lines) expect(found).toBe(said)
  await Promise.all([...kept.values()].map((sql) => sql.end()))
})

describe('what a client sends later or together has its own line or none', () => {
  const queued: Readonly<Record<string, Flow>> = {
    async 'a queue of a client'({ pool }) {
      const client = await pool.connect()
      const [{ rows }] = await Promise.all([
        client.query(here(read)),
        client.query(here('SELECT 2')),
        client.query(here('SELECT 3')),
      ])
      await client.query(here(write(rows[0])))
      client.release()
    },
    async 'a pool that is in use'({ url: address }) {
      const pool = new pg.Pool({ connectionString: address, max: 1 })
      await pool.query(here('SELECT 0'))
      const [{ rows }] = await Promise.all([
        pool.query(here(read)),
        pool.query(here('SELECT 2')),
        pool.query(here('SELECT 3')),
      ])
      await pool.query(here(write(rows[0])))
      await pool.end()
    },
    async 'a connection that is given back'({ url: address }) {
      const pool = new pg.Pool({ connectionString: address, max: 1 })
      const client = await pool.connect()
      const waiting = pool.query(here(read))
      client.release()
      const { rows } = await waiting
      await pool.query(here(write(rows[0])))
      await pool.end()
    },
    async 'one after the other without waiting'({ url: address }) {
      const sql = postgres(address, { max: 1 })
      const [rows] = await Promise.all([
        sql.unsafe(here(read)),
        sql.unsafe(here('SELECT 2')),
        sql.unsafe(here('SELECT 3')),
      ])
      await sql.unsafe(here(write(rows[0])))
      await sql.end()
    },
  }

  test.each(Object.entries(queued))('%s', async (_, flow) => {
    const lines = await linesOf(flow)
    for (const [said, found] of lines) expect(['', said]).toContain(found)
    expect(lines.some(([, found]) => found !== '')).toBe(true)
  })
})
