import { randomUUID } from 'node:crypto'
import { withClient } from '@holdfast/testkit'
import { PrismaPg } from '@prisma/adapter-pg'
import { sql } from 'drizzle-orm'
import { drizzle } from 'drizzle-orm/node-postgres'
import { integer, pgTable, text, timestamp } from 'drizzle-orm/pg-core'
import { Redis } from 'ioredis'
import {
  RateLimiterDrizzle,
  RateLimiterPostgres,
  RateLimiterPrisma,
  RateLimiterRedis,
  RateLimiterRes,
  type RateLimiterStoreAbstract,
} from 'rate-limiter-flexible'
import type { Driver } from '../../packages/holdfast/src/core/driver.ts'
import { fromDrizzle } from '../../packages/holdfast/src/drivers/drizzle.ts'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { fromPrisma } from '../../packages/holdfast/src/drivers/prisma.ts'
import { createHoldfast } from '../../packages/holdfast/src/index.ts'
import { openPool } from '../harness/open-pool.ts'
import { installLedger } from '../ledger/open-ledger.ts'
import { PrismaClient } from './prisma/generated/client.ts'

/** A quota of `limit` points a month, by whoever keeps it. */
export interface Limiter extends AsyncDisposable {
  /** Whether so many points were granted. `id` names the request, for those who can tell a retry. */
  consume(key: string, points: number, id?: string): Promise<boolean>
}

/** Where limiters keep what they count. */
export interface Places {
  readonly url: string
  /** Of a Redis on this machine, if there is one. */
  readonly redisPort: number | undefined
}

type OpenLimiter = (places: Places, limit: number, connections: number) => Promise<Limiter>

const month = 30 * 24 * 60 * 60

function ours<Tx>(driver: Driver<Tx>, limit: number, close: () => Promise<unknown>): Limiter {
  const quota = createHoldfast(driver).quota({ name: 'peers', limit, per: 'month' })
  return {
    consume: async (key, points, id = randomUUID()) =>
      (await quota.consume(key, points, { operationId: id })).ok,
    [Symbol.asyncDispose]: async () => void (await close()),
  }
}

/** Without history and operation ids. */
function lean<Tx>(driver: Driver<Tx>, limit: number, close: () => Promise<unknown>): Limiter {
  const calls = createHoldfast(driver).rateLimit({ name: 'peers', limit, per: 'month' })
  return {
    consume: async (key, points) => (await calls.consume(key, points)).ok,
    [Symbol.asyncDispose]: async () => void (await close()),
  }
}

function theirs(limiter: RateLimiterStoreAbstract, close: () => Promise<unknown>): Limiter {
  return {
    async consume(key, points) {
      try {
        await limiter.consume(key, points)
        return true
      } catch (refusal) {
        if (refusal instanceof RateLimiterRes) return false
        throw refusal
      }
    },
    [Symbol.asyncDispose]: async () => void (await close()),
  }
}

const limiterTable = pgTable('limiter_drizzle', {
  key: text('key').primaryKey(),
  points: integer('points').notNull(),
  expire: timestamp('expire'),
})

const common = { duration: month, keyPrefix: '', clearExpiredByTimeout: false } as const

function prismaOn(url: string, connections: number): PrismaClient {
  return new PrismaClient({ adapter: new PrismaPg({ connectionString: url, max: connections }) })
}

/** Each store of theirs beside us on the same client. */
export const limiters = {
  'rate limit, pg': async ({ url }, limit, connections) => {
    const pool = await openPool(url, connections)
    return lean(fromPg(pool), limit, () => pool.end())
  },
  'rate limit, Prisma': async ({ url }, limit, connections) => {
    const prisma = prismaOn(url, connections)
    return lean(fromPrisma(prisma), limit, () => prisma.$disconnect())
  },
  'rate limit, Drizzle': async ({ url }, limit, connections) => {
    const pool = await openPool(url, connections)
    return lean(fromDrizzle(drizzle(pool), sql), limit, () => pool.end())
  },
  'rate-limiter-flexible, Redis': async ({ redisPort }, limit) => {
    // One connection, on which calls follow each other without waiting: as its documentation has it.
    const redis = new Redis({ host: '127.0.0.1', port: redisPort ?? 0 })
    const limiter = new RateLimiterRedis({
      storeClient: redis,
      points: limit,
      duration: month,
      keyPrefix: 'peers',
    })
    return theirs(limiter, () => redis.quit())
  },
  'quota, pg': async ({ url }, limit, connections) => {
    const pool = await openPool(url, connections)
    return ours(fromPg(pool), limit, () => pool.end())
  },
  'rate-limiter-flexible, PostgreSQL': async ({ url }, limit, connections) => {
    const pool = await openPool(url, connections)
    const limiter = new RateLimiterPostgres({
      ...common,
      storeClient: pool,
      tableName: 'limiter_postgres',
      tableCreated: true,
      points: limit,
    })
    return theirs(limiter, () => pool.end())
  },
  'quota, Prisma': async ({ url }, limit, connections) => {
    const prisma = prismaOn(url, connections)
    return ours(fromPrisma(prisma), limit, () => prisma.$disconnect())
  },
  'rate-limiter-flexible, Prisma': async ({ url }, limit, connections) => {
    const prisma = prismaOn(url, connections)
    const limiter = new RateLimiterPrisma({
      ...common,
      storeClient: prisma,
      tableName: 'rateLimiterFlexible',
      points: limit,
    })
    return theirs(limiter, () => prisma.$disconnect())
  },
  'quota, Drizzle': async ({ url }, limit, connections) => {
    const pool = await openPool(url, connections)
    return ours(fromDrizzle(drizzle(pool), sql), limit, () => pool.end())
  },
  'rate-limiter-flexible, Drizzle': async ({ url }, limit, connections) => {
    const pool = await openPool(url, connections)
    const limiter = new RateLimiterDrizzle({
      ...common,
      storeClient: drizzle(pool),
      schema: limiterTable,
      points: limit,
    })
    return theirs(limiter, () => pool.end())
  },
} as const satisfies Record<string, OpenLimiter>

export type LimiterName = keyof typeof limiters

/** Their tables, as their documentation has them, and our schema. */
export async function installLimiters(url: string): Promise<void> {
  await installLedger(url)
  await withClient(url, async (client) => {
    await client.query(
      `CREATE TABLE limiter_postgres (key varchar(255) PRIMARY KEY, points integer NOT NULL DEFAULT 0, expire bigint)`,
    )
    for (const table of ['limiter_prisma', 'limiter_drizzle']) {
      await client.query(
        `CREATE TABLE ${table} (key text PRIMARY KEY, points integer NOT NULL, expire timestamp(3))`,
      )
    }
  })
}
