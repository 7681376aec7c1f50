import { sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { createHoldfast, type Holdfast } from 'holdfast'
import { type DrizzleTransactionOf, fromDrizzle } from 'holdfast/drivers/drizzle'
import pg from 'pg'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })

export const db: NodePgDatabase = drizzle(pool)

/** Holdfast over the client that is there anyway. It opens no connection of its own. */
export const hf: Holdfast<DrizzleTransactionOf<NodePgDatabase>> = createHoldfast(
  fromDrizzle(db, sql),
  // The race explorer makes transactions wait for each other: in tests nothing gives up early.
  { wait: process.env['NODE_ENV'] === 'test' ? 'inherit' : '10 s' },
)
