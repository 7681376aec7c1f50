/** Blocks on Drizzle over node-postgres. */
import { sql } from 'drizzle-orm'
import { drizzle, type NodePgDatabase } from 'drizzle-orm/node-postgres'
import { createHoldfast, type Holdfast, type LockKey, lockKey } from 'holdfast'
import { type DrizzleTransactionOf, fromDrizzle } from 'holdfast/drivers/drizzle'
import pg from 'pg'

export { sql } from 'drizzle-orm'
export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromDrizzle } from 'holdfast/drivers/drizzle'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const db: NodePgDatabase = drizzle(pool)
export const hf: Holdfast<DrizzleTransactionOf<NodePgDatabase>> = createHoldfast(
  fromDrizzle(db, sql),
)
export const userId = 'user-1'
export const key: LockKey = lockKey('user', userId)

export async function close(): Promise<void> {
  await pool.end()
}
