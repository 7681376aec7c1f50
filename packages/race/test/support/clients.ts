import 'reflect-metadata'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql as drizzleSql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { Kysely, PostgresDialect, sql as kyselySql } from 'kysely'
import { Pool } from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import { PrismaClient } from '../../../holdfast/test/conformance/prisma/generated/client.ts'
import type { FlowContext } from '../../src/run/options.ts'

type Row = Record<string, unknown>
export type Ask = (text: string, ...values: readonly unknown[]) => Promise<Row[]>

/** A client as an application uses it: one transaction around some statements, or none. */
export interface AnyClient {
  transaction<T>(body: (ask: Ask) => Promise<T>): Promise<T>
  ask: Ask
  end(): Promise<void>
}

type Open = (context: Pick<FlowContext, 'url' | 'pool'>) => Promise<AnyClient>

function openPool(pool: Pool, end: () => Promise<void>): AnyClient {
  return {
    ask: async (text, ...values) => (await pool.query<Row>(text, [...values])).rows,
    async transaction(body) {
      const client = await pool.connect()
      try {
        await client.query('BEGIN')
        const result = await body(
          async (text, ...values) => (await client.query<Row>(text, [...values])).rows,
        )
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK')
        throw error
      } finally {
        client.release()
      }
    },
    end,
  }
}

function openDrizzle(pool: Pool, end: () => Promise<void>): AnyClient {
  const db = drizzle(pool)
  // Drizzle numbers the parameters itself.
  const query = (text: string, values: readonly unknown[]) =>
    drizzleSql.join(
      text
        .split(/\$\d/)
        .flatMap((part, index) =>
          index < values.length
            ? [drizzleSql.raw(part), drizzleSql`${values[index]}`]
            : [drizzleSql.raw(part)],
        ),
    )
  return {
    ask: async (text, ...values) => (await db.execute(query(text, values))).rows,
    transaction: (body) =>
      db.transaction((tx) =>
        body(async (text, ...values) => (await tx.execute(query(text, values))).rows),
      ),
    end,
  }
}

function openKysely(pool: Pool): AnyClient {
  const db = new Kysely<unknown>({ dialect: new PostgresDialect({ pool }) })
  const query = (text: string, values: readonly unknown[]) => {
    const parts = text.split(/\$\d/)
    return kyselySql<Row>(parts as unknown as TemplateStringsArray, ...values)
  }
  return {
    ask: async (text, ...values) => (await query(text, values).execute(db)).rows,
    transaction: (body) =>
      db
        .transaction()
        .execute((tx) =>
          body(async (text, ...values) => (await query(text, values).execute(tx)).rows),
        ),
    end: async () => await Promise.resolve(),
  }
}

async function openPrisma(adapter: PrismaPg): Promise<AnyClient> {
  const prisma = new PrismaClient({ adapter })
  await prisma.$connect()
  return {
    ask: (text, ...values) => prisma.$queryRawUnsafe<Row[]>(text, ...values),
    transaction: (body) =>
      prisma.$transaction((tx) =>
        body((text, ...values) => tx.$queryRawUnsafe<Row[]>(text, ...values)),
      ),
    end: () => prisma.$disconnect(),
  }
}

async function openTypeOrm(url: string): Promise<AnyClient> {
  const source = new DataSource({ type: 'postgres', url, logging: false })
  await source.initialize()
  return {
    ask: (text, ...values) => source.query(text, [...values]),
    transaction: (body) =>
      source.transaction((tx) => body((text, ...values) => tx.query(text, [...values]))),
    end: () => source.destroy(),
  }
}

function openPostgresJs(url: string): AnyClient {
  const sql = postgres(url, { max: 3, onnotice: () => {} })
  const ask =
    (on: postgres.Sql | postgres.TransactionSql): Ask =>
    async (text, ...values) => [...(await on.unsafe<Row[]>(text, values as string[]))]
  return {
    ask: ask(sql),
    transaction: async (body) => (await sql.begin((tx) => body(ask(tx)))) as never,
    end: () => sql.end(),
  }
}

const nothing = async (): Promise<void> => {}

/** Every client that is promised to work, and the ways in which it may be given the gate. */
export const clients: Readonly<Record<string, Open>> = {
  'pg, pool given': async ({ pool }) => openPool(pool, nothing),
  'pg, by address': async ({ url }) => {
    const pool = new Pool({ connectionString: url })
    return openPool(pool, () => pool.end())
  },
  'Drizzle on the pool': async ({ pool }) => openDrizzle(pool, nothing),
  'Kysely on the pool': async ({ pool }) => openKysely(pool),
  'Prisma on the pool': ({ pool }) => openPrisma(new PrismaPg(pool)),
  'Prisma, by address': ({ url }) => openPrisma(new PrismaPg({ connectionString: url })),
  'TypeORM, by address': ({ url }) => openTypeOrm(url),
  'postgres.js, by address': async ({ url }) => openPostgresJs(url),
}
