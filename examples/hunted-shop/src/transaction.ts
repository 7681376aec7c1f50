import type { Pool, PoolClient } from 'pg'

/** Opens a transaction, commits what the body did, and rolls back if it throws. */
export async function transaction<T>(
  pool: Pool,
  body: (client: PoolClient) => Promise<T>,
  begin = 'BEGIN',
): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query(begin)
    const result = await body(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}
