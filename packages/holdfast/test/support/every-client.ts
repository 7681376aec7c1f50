import 'reflect-metadata'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql } from 'drizzle-orm'
import { drizzle as drizzlePg } from 'drizzle-orm/node-postgres'
import { drizzle as drizzlePostgresJs } from 'drizzle-orm/postgres-js'
import { CamelCasePlugin, Kysely, PostgresDialect } from 'kysely'
import { Pool } from 'pg'
import postgres from 'postgres'
import { DataSource } from 'typeorm'
import type { Driver } from '../../src/core/driver.ts'
import { fromDrizzle } from '../../src/drivers/drizzle.ts'
import { fromKysely } from '../../src/drivers/kysely.ts'
import { fromPg } from '../../src/drivers/pg.ts'
import { fromPostgresJs } from '../../src/drivers/postgres-js.ts'
import { fromPrisma } from '../../src/drivers/prisma.ts'
import { fromTypeOrm } from '../../src/drivers/typeorm.ts'
import { PrismaClient } from '../conformance/prisma/generated/client.ts'

/** A client of a user, and the driver on it. */
export interface OpenClient {
  readonly driver: Driver<unknown>
  end(): Promise<unknown>
}

const opened = <Tx>(driver: Driver<Tx>, end: () => Promise<unknown>): OpenClient => ({
  driver: driver as Driver<unknown>,
  end,
})

/**
 * Every client we promise to work with, each in the ways that make a difference. In a brief run the files that do the same
 * on all of them take every third, not all from the same one on, where it is not the client that decides.
 */
export const everyClient: Readonly<Record<string, (url: string) => Promise<OpenClient>>> = {
  async pg(url) {
    const pool = new Pool({ connectionString: url, max: 4 })
    return opened(fromPg(pool), () => pool.end())
  },
  async 'postgres.js'(url) {
    const client = postgres(url, { max: 4, prepare: false })
    return opened(fromPostgresJs(client), () => client.end())
  },
  async 'postgres.js in camel case'(url) {
    const client = postgres(url, { max: 4, prepare: false, transform: postgres.camel })
    return opened(fromPostgresJs(client), () => client.end())
  },
  async prisma(url) {
    const prisma = new PrismaClient({
      adapter: new PrismaPg({ connectionString: url, max: 4 }),
      // Prisma gives up after 2 s without a connection, which is not much on a busy machine.
      transactionOptions: { maxWait: 20_000 },
    })
    return opened(fromPrisma(prisma), () => prisma.$disconnect())
  },
  async 'drizzle on pg'(url) {
    const pool = new Pool({ connectionString: url, max: 4 })
    return opened(fromDrizzle(drizzlePg(pool), sql), () => pool.end())
  },
  async 'drizzle on postgres.js'(url) {
    const client = postgres(url, { max: 4, prepare: false })
    return opened(fromDrizzle(drizzlePostgresJs(client), sql), () => client.end())
  },
  async 'kysely in camel case'(url) {
    const dialect = new PostgresDialect({ pool: new Pool({ connectionString: url, max: 4 }) })
    const db = new Kysely<unknown>({ dialect, plugins: [new CamelCasePlugin()] })
    return opened(fromKysely(db), () => db.destroy())
  },
  async typeorm(url) {
    const source = new DataSource({ type: 'postgres', url, poolSize: 4, logging: false })
    await source.initialize()
    return opened(fromTypeOrm(source), () => source.destroy())
  },
}
