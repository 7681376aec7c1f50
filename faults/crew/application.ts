import { Pool, type PoolClient } from 'pg'
import postgres from 'postgres'
import { fromPg } from '../../packages/holdfast/src/drivers/pg.ts'
import { fromPostgresJs } from '../../packages/holdfast/src/drivers/postgres-js.ts'
import { createHoldfast, hearNotice, type Holdfast } from '../../packages/holdfast/src/index.ts'

export type Row = Readonly<Record<string, unknown>>

/** What an application has: Holdfast, and a way to write to its own tables. */
export interface Application<Tx> {
  readonly hf: Holdfast<Tx>
  query(tx: Tx, text: string, values: readonly unknown[]): Promise<readonly Row[]>
  /** What is on its way only the end of the process closes, which a real application reaches here. */
  close(): Promise<'all' | 'all but what is on its way'>
}

/** How one process reaches the database. */
export interface Post {
  readonly door: 'pooled' | 'direct'
  readonly client: 'pg' | 'postgres'
}

/** Who works where: through the pooler and past it, with both clients. */
export const posts: readonly Post[] = [
  { door: 'pooled', client: 'pg' },
  { door: 'direct', client: 'pg' },
  { door: 'pooled', client: 'postgres' },
  { door: 'direct', client: 'postgres' },
]

const connectMs = 3_000
const endMs = 2_000
const closing = { within: '2 s', leaveAfter: '1 s' } as const

/** An application as its documentation says it should be: small pool, a limit for connecting. */
export function pgApplication(url: string, connections: number): Application<PoolClient> {
  const pool = new Pool({
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: connectMs,
    application_name: 'faults',
  })
  // Connections that are lost while nobody uses them; who uses one is told by its own query.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => void client.on('error', () => undefined))
  const hf = createHoldfast(fromPg(pool))
  return {
    hf,
    query: async (tx, text, values) => (await tx.query<Row>(text, [...values])).rows,
    async close() {
      await hf.close(closing)
      await pool.end()
      return 'all'
    },
  }
}

export type PostgresJsTx = postgres.TransactionSql

export function postgresJsApplication(
  url: string,
  connections: number,
  prepare: boolean,
): Application<PostgresJsTx> {
  const sql = postgres(url, {
    max: connections,
    connect_timeout: connectMs / 1_000,
    prepare,
    // postgres.js asks for the types of a new connection and lets nobody catch it if that fails, as it does
    // behind a pooler that cannot reach its server: the process would end (seen in 3.4.9).
    fetch_types: false,
    // How the library hears of a commit that did not wait for its standby.
    onnotice: hearNotice,
    connection: { application_name: 'faults' },
  })
  const hf = createHoldfast(fromPostgresJs(sql))
  return {
    hf,
    query: async (tx, text, values) => await tx.unsafe<Row[]>(text, values as never[]),
    async close() {
      await hf.close(closing)
      const began = performance.now()
      await sql.end({ timeout: endMs / 1_000 })
      // What postgres.js (3.4.9) was about to connect again when its end ran out of time, it connects all the
      // same, and keeps.
      return performance.now() - began < endMs ? 'all' : 'all but what is on its way'
    },
  }
}
