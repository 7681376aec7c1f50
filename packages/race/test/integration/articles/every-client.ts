import type { Pool } from 'pg'
import type { OpenClient } from './article-code.ts'
import { openDrizzle } from './drizzle.ts'
import { openKysely } from './kysely.ts'
import { openPg } from './pg.ts'
import { openPostgresJs } from './postgres-js.ts'
import { openPrisma } from './prisma.ts'
import { openTypeOrm } from './typeorm.ts'

/** What a flow is given to reach the database: as a pool of `pg`, and as an address. */
export interface Reach {
  readonly pool: Pool
  readonly url: string
}

/** The clients that the articles' code is written for. */
export const everyClient: Readonly<Record<string, (reach: Reach) => Promise<OpenClient>>> = {
  pg: async ({ pool }) => openPg(pool),
  prisma: async ({ url }) => openPrisma(url),
  drizzle: async ({ pool }) => openDrizzle(pool),
  kysely: async ({ pool }) => openKysely(pool),
  typeorm: async ({ url }) => await openTypeOrm(url),
  'postgres.js': async ({ url }) => openPostgresJs(url),
}
