/** What the blocks about leases and leader election may take for granted. */
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

export { createHoldfast, isHoldfastError, lockKey } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
/** A pool that leads past the pooler, straight to the server. */
export const directPool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
await migrate(fromPg(pool))
await pool.query(`
  CREATE TABLE report (day date PRIMARY KEY, rows int NOT NULL);
  CREATE TABLE image (id text PRIMARY KEY, fence bigint NOT NULL, url text NOT NULL)`)

/** Something slow outside the database. */
export async function collectRows(options: { signal: AbortSignal }): Promise<number> {
  options.signal.throwIfAborted()
  return 42
}
/** One piece of a leader's work. */
export async function reconcile(): Promise<void> {}
/** Aborted when the process is told to end. */
export const shutdown: AbortController = new AbortController()
export const imageId = 'image-1'

export async function close(): Promise<void> {
  await pool.end()
  await directPool.end()
}
