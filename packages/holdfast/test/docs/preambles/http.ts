/** What the blocks about answers over HTTP may take for granted: a shop, a quota. */
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import type { Quota } from 'holdfast/quota'
import pg from 'pg'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
await migrate(fromPg(pool))

export const calls: Quota<pg.PoolClient, number> = hf.quota({
  name: 'api-calls',
  limit: 100,
  per: 'day',
})

/** Long enough for two that come at once to meet. */
export async function checkOut(tx: pg.PoolClient, _cart: string): Promise<void> {
  await tx.query('SELECT pg_sleep(0.3)')
}

export async function close(): Promise<void> {
  await pool.end()
}
