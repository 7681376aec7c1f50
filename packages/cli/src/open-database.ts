import { setTimeout } from 'node:timers/promises'
import type { Driver } from 'holdfast'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'

const endLimitMs = 1_000

/** How long a server may take to accept a connection. */
export const connectLimitMs = 15_000

/**
 * Two connections at most, for as long as `use` runs: whether locks are real takes two to prove. With `first`, one is
 * opened before: what the library would wait for, a failover, is a mistyped host to a person at a command line.
 */
export async function withDatabase<T>(
  url: string,
  use: (driver: Driver<pg.PoolClient>) => Promise<T>,
  { first = false }: { readonly first?: boolean } = {},
): Promise<T> {
  const pool = new pg.Pool({
    connectionString: url,
    max: 2,
    application_name: 'holdfast',
    connectionTimeoutMillis: connectLimitMs,
  })
  // A connection that breaks while idle; the next statement will say so.
  pool.on('error', () => undefined)
  try {
    if (first) (await pool.connect()).release()
    return await use(fromPg(pool))
  } finally {
    // A server that says nothing does not let go of its connections either.
    const limit = new AbortController()
    await Promise.race([
      pool.end(),
      setTimeout(endLimitMs, undefined, { signal: limit.signal }).catch(() => undefined),
    ])
    limit.abort()
  }
}
