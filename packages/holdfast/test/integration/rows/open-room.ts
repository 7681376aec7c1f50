import { Pool, type PoolClient, type QueryResultRow } from 'pg'
import type { Driver, Transaction } from '../../../src/core/driver.ts'
import { fromPg } from '../../../src/drivers/pg.ts'
import { createRows, type Rows } from '../../../src/entries/rows.ts'
import { testDatabase } from '../../support/database.ts'

/** A transaction that a test opened itself, with the backend that serves it. */
export interface OpenTransaction {
  readonly client: PoolClient
  readonly pid: number
  /** Runs one statement in it and gives the rows. */
  sql<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** The rooms under test on a database of their own. */
export interface Room {
  readonly driver: Driver<PoolClient>
  readonly rows: Rows<PoolClient>
  readonly pool: Pool
  /** Direct connections, for looking and for preparing. */
  readonly observer: Pool
  readonly throughPooler: boolean
  /** Runs one statement on a connection of the observer's. */
  sql<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<R[]>
  begin(): Promise<OpenTransaction>
  /** Rolls back what a test left open; for afterEach. */
  tidy(): Promise<void>
  close(): Promise<void>
}

export async function openRoom(): Promise<Room> {
  const { url, directUrl, throughPooler } = await testDatabase()
  const pool = new Pool({ connectionString: url, max: 15, idleTimeoutMillis: 0 })
  const observer = new Pool({ connectionString: directUrl, max: 4, application_name: 'observer' })
  await warm(pool, 8)
  const driver = fromPg(pool)
  const open = new Set<OpenTransaction>()
  const sql: Room['sql'] = async (text, values) =>
    (await observer.query(text, values)).rows as never
  return {
    driver,
    rows: createRows(driver),
    pool,
    observer,
    throughPooler,
    sql,
    async begin() {
      const client = await pool.connect()
      await client.query('BEGIN')
      const { rows } = await client.query<{ pid: number }>('SELECT pg_backend_pid() AS pid')
      const finish = async (how: string): Promise<void> => {
        if (!open.delete(transaction)) return
        await client.query(how)
        client.release()
      }
      const transaction: OpenTransaction = {
        client,
        pid: rows[0]?.pid as number,
        sql: async (text, values) => (await client.query(text, values)).rows as never,
        commit: () => finish('COMMIT'),
        rollback: () => finish('ROLLBACK'),
      }
      open.add(transaction)
      return transaction
    },
    async tidy() {
      await Promise.all([...open].map((transaction) => transaction.rollback()))
    },
    async close() {
      await Promise.all([pool.end(), observer.end()])
    },
  }
}

/**
 * Opens connections beforehand, behind a pooler too. What is tested has limits of milliseconds, and
 * a new connection may take longer than that.
 */
async function warm(pool: Pool, count: number): Promise<void> {
  const clients = await Promise.all(Array.from({ length: count }, () => pool.connect()))
  await Promise.all(clients.map((client) => client.query('BEGIN')))
  await Promise.all(clients.map((client) => client.query('SELECT 1')))
  await Promise.all(clients.map((client) => client.query('ROLLBACK')))
  for (const client of clients) client.release()
}

/** The same driver, its transactions changed as a client of another kind would show them. */
export function driverWith<Tx>(driver: Driver<Tx>, change: Partial<Transaction<Tx>>): Driver<Tx> {
  return { ...driver, join: (tx) => ({ ...driver.join(tx), ...change }) }
}

/** The error of a promise that must reject. */
export async function errorOf(promise: Promise<unknown>): Promise<Error & { code?: string }> {
  try {
    await promise
  } catch (error) {
    return error as Error
  }
  throw new Error('it was expected to fail')
}
