/** What the blocks about runtimes may take for granted: the schema is there, and a table for orders. */
import { fromPg } from 'holdfast/drivers/pg'
import { migrate } from 'holdfast/schema'
import pg from 'pg'

const pool: pg.Pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'] })
await migrate(fromPg(pool))
await pool.query('CREATE TABLE orders (id text PRIMARY KEY, customer text NOT NULL)')
await pool.end()

export async function close(): Promise<void> {}
