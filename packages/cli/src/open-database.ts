import { setTimeout } from 'node:timers/promises'
import type { Driver } from 'holdfast'
import type { InnodbDriver } from 'holdfast/mysql'
import { fromPg } from 'holdfast/drivers/pg'
import pg from 'pg'
import { isMysqlUrl } from './settings/database-url.ts'

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
  if (isMysqlUrl(url)) return await withMysql(url, use as never, { first })
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
    await endedInTime(pool.end())
  }
}

/** The same on MariaDB and MySQL. */
async function withMysql<T>(
  url: string,
  use: (driver: InnodbDriver<unknown>) => Promise<T>,
  { first }: { readonly first: boolean },
): Promise<T> {
  const [{ createPool }, { fromMysql2 }] = await Promise.all([
    import('mysql2/promise'),
    import('holdfast/drivers/mysql2'),
  ])
  const pool = createPool({
    uri: url.replace(/^mariadb:/i, 'mysql:'),
    connectionLimit: 2,
    connectTimeout: connectLimitMs,
    connectAttributes: { program_name: 'holdfast' },
  })
  try {
    if (first) (await pool.getConnection()).release()
    return await use(fromMysql2(pool) as InnodbDriver<unknown>)
  } finally {
    await endedInTime(pool.end())
  }
}

/** A server that says nothing does not let go of its connections either. */
async function endedInTime(ending: Promise<void>): Promise<void> {
  const limit = new AbortController()
  await Promise.race([
    ending,
    setTimeout(endLimitMs, undefined, { signal: limit.signal }).catch(() => undefined),
  ])
  limit.abort()
}
