/** What the blocks about schedules may take for granted: the schema, and a job worth doing once. */
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import type { Schedule } from 'holdfast/schedule'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

export { createHoldfast } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'
export { migrate } from 'holdfast/schema'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
await migrate(fromPg(pool))
await pool.query('CREATE TABLE settlement (night timestamptz NOT NULL)')

/** The work of one night. */
export async function settle(tx: pg.PoolClient, night: Date): Promise<void> {
  await tx.query('INSERT INTO settlement VALUES ($1)', [night])
}

/** Something outside the database. */
export async function sendReport(_day: Date, _options?: { signal: AbortSignal }): Promise<void> {}

export const nightly: Schedule = hf.schedule({
  name: 'nightly',
  cron: '0 3 * * *',
  guarantee: 'transactional',
  handler: async (tx, { at }) => await settle(tx, at),
})

export async function close(): Promise<void> {
  await pool.end()
}
