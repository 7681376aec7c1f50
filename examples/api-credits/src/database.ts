import { sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { createHoldfast, type Holdfast } from 'holdfast'
import { type DrizzleTransactionOf, fromDrizzle } from 'holdfast/drivers/drizzle'
import pg from 'pg'
import { settings } from './settings.ts'

/** A process of a serverless platform is small and there are many: few connections each. */
export const pool: pg.Pool = new pg.Pool({ connectionString: settings.databaseUrl, max: 5 })

export const db: NodePgDatabase = drizzle(pool)

/** Holdfast over the client the service has anyway. It opens no connection of its own. */
export const hf: Holdfast<DrizzleTransactionOf<NodePgDatabase>> = createHoldfast(
  fromDrizzle(db, sql),
)
