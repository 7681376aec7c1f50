import { Pool } from 'pg'

/**
 * A pool whose connections are all open and stay open, so that no measured operation or round of
 * callers pays for connecting.
 */
export async function openPool(url: string, size: number): Promise<Pool> {
  const pool = new Pool({ connectionString: url, max: size, idleTimeoutMillis: 0 })
  // `end()` resolves before the sockets are closed; a server that is stopped right after says so
  // to each of them, and without a listener that would end the process.
  pool.on('error', (error) => {
    if (!pool.ending) throw error
  })
  const clients = await Promise.all(Array.from({ length: size }, () => pool.connect()))
  for (const client of clients) client.release()
  return pool
}
