/** What the blocks about once may take for granted: the schema, orders, and a webhook. */
import { createHoldfast, type Holdfast } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

export { createHoldfast } from 'holdfast'
export { fromPg } from 'holdfast/drivers/pg'
export { idempotentExpress, idempotentFastify, idempotentFetch } from 'holdfast/once'
export { migrate } from 'holdfast/schema'

export const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
export const hf: Holdfast<pg.PoolClient> = createHoldfast(fromPg(pool))
await migrate(fromPg(pool))
await pool.query(`
  CREATE TABLE orders (id text PRIMARY KEY, paid int NOT NULL DEFAULT 0);
  CREATE TABLE payment (id serial PRIMARY KEY, amount int NOT NULL);
  INSERT INTO orders VALUES ('4711'), ('4712')`)

export const event: { readonly id: string; readonly order: string; readonly amount: number } = {
  id: 'evt_1',
  order: '4711',
  amount: 30,
}

export async function isSigned(_request: Request): Promise<boolean> {
  return true
}

export function userOf(_request: unknown): string {
  return 'ann'
}

export async function close(): Promise<void> {
  await pool.end()
}
