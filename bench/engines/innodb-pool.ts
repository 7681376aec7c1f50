import { createPool, type Pool, type RowDataPacket } from 'mysql2/promise'

/** A pool of `mysql2`. */
export function openInnodbPool(uri: string, size: number): Pool {
  // Idle connections are closed here before a server does it that ends sessions which are idle.
  const pool = createPool({ uri, connectionLimit: size, maxIdle: 0, idleTimeout: 1_000 })
  // The server ends sessions of processes that were paused in a transaction.
  pool.on('connection', (connection) => {
    const callbacks = connection as unknown as { on(event: 'error', heard: () => void): void }
    callbacks.on('error', () => undefined)
  })
  return pool
}

type Queries = Pick<Pool, 'query'>

export async function rowsOf(
  on: Queries,
  text: string,
  values: readonly unknown[] = [],
): Promise<readonly Record<string, unknown>[]> {
  const [rows] = await on.query<RowDataPacket[]>(text, [...values])
  return rows
}

export async function numberOf(on: Queries, text: string): Promise<number> {
  const [row] = await rowsOf(on, text)
  return Number(Object.values(row ?? {})[0])
}
