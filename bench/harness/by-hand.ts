import type { Pool, PoolClient } from 'pg'

/** A transaction as people write it by hand. */
export async function byHand(
  pool: Pool,
  body: (client: PoolClient) => Promise<unknown>,
): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await body(client)
    await client.query('COMMIT')
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}
