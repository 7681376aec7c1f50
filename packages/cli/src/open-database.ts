import type { Driver } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'

/** Two connections at most, for as long as `use` runs: whether locks are real takes two to prove. */
export async function withDatabase<T>(
  url: string,
  use: (driver: Driver<pg.PoolClient>) => Promise<T>,
): Promise<T> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 2,
    application_name: 'holdfast',
    connectionTimeoutMillis: 15_000,
  })
  // A connection that breaks while idle; the next statement will say so.
  pool.on('error', () => undefined)
  try {
    return await use(fromPg(pool))
  } finally {
    await pool.end()
  }
}
