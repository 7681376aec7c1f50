import type { ClientBase, Pool } from 'pg'
import { cap, event, incomingBytes, limit, lockUser, type OpenClient } from './article-code.ts'

async function transaction<T>(pool: Pool, work: (client: ClientBase) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK')
    throw error
  } finally {
    client.release()
  }
}

export function openPg(pool: Pool): OpenClient {
  return {
    run: {
      quota: (version) =>
        transaction(pool, async (tx) => {
          if (version === 'fixed') await tx.query(lockUser)
          const { rows } = await tx.query<{ used: number }>(
            'SELECT used FROM usage WHERE user_id = $1',
            ['ann'],
          )
          if ((rows[0]?.used ?? 0) + 1 > limit) return 'refused'
          await tx.query('UPDATE usage SET used = used + 1 WHERE user_id = $1', ['ann'])
          return 'accepted'
        }),
      upload: (version) =>
        transaction(pool, async (tx) => {
          if (version === 'fixed') await tx.query(lockUser)
          const { rows } = await tx.query<{ used: number }>(
            'SELECT coalesce(sum(byte_size), 0)::int AS used FROM user_image WHERE user_id = $1',
            ['ann'],
          )
          if ((rows[0]?.used ?? 0) + incomingBytes > cap) return 'refused'
          await tx.query('INSERT INTO user_image (user_id, byte_size) VALUES ($1, $2)', [
            'ann',
            incomingBytes,
          ])
          return 'accepted'
        }),
      stock: (version) =>
        transaction(pool, async (tx) => {
          const lock = version === 'fixed' ? 'FOR UPDATE' : ''
          const { rows } = await tx.query<{ stock: number }>(
            `SELECT stock FROM variant WHERE id = $1 ${lock}`,
            [1],
          )
          const stock = rows[0]?.stock ?? 0
          if (stock < 1) return 'sold out'
          await tx.query('UPDATE variant SET stock = $2 WHERE id = $1', [1, stock - 1])
          await tx.query('INSERT INTO stock_movement (variant_id, change) VALUES ($1, $2)', [1, -1])
          return 'sold'
        }),
      webhook: (version) =>
        transaction(pool, async (tx) => {
          if (version === 'fixed') {
            const { rowCount } = await tx.query(
              'INSERT INTO unique_webhook (external_id) VALUES ($1) ON CONFLICT DO NOTHING',
              [event],
            )
            return rowCount === 1 ? 'handled' : 'seen before'
          }
          const seen = await tx.query('SELECT 1 FROM webhook WHERE external_id = $1', [event])
          if (seen.rowCount !== 0) return 'seen before'
          await tx.query('INSERT INTO webhook (external_id) VALUES ($1)', [event])
          return 'handled'
        }),
      job: (version, who) =>
        transaction(pool, async (tx) => {
          const lock = version === 'fixed' ? 'FOR UPDATE SKIP LOCKED' : ''
          const { rows } = await tx.query<{ id: number }>(
            `SELECT id FROM job WHERE worker IS NULL ORDER BY id LIMIT 1 ${lock}`,
          )
          const id = rows[0]?.id
          if (id === undefined) return 'nothing to do'
          await tx.query('UPDATE job SET worker = $2 WHERE id = $1', [id, who])
          return `job ${id}`
        }),
    },
    [Symbol.asyncDispose]: () => Promise.resolve(),
  }
}
