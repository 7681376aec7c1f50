import postgres from 'postgres'
import { cap, event, incomingBytes, limit, lockUser, type OpenClient } from './article-code.ts'

export function openPostgresJs(url: string): OpenClient {
  // One connection, as a request has it; the driver's own look at the types is not the article's.
  const db = postgres(url, { max: 1, fetch_types: false })
  return {
    run: {
      quota: (version) =>
        db.begin(async (tx) => {
          if (version === 'fixed') await tx.unsafe(lockUser)
          const [row] = await tx<
            { used: number }[]
          >`SELECT used FROM usage WHERE user_id = ${'ann'}`
          if ((row?.used ?? 0) + 1 > limit) return 'refused'
          await tx`UPDATE usage SET used = used + 1 WHERE user_id = ${'ann'}`
          return 'accepted'
        }),
      upload: (version) =>
        db.begin(async (tx) => {
          if (version === 'fixed') await tx.unsafe(lockUser)
          const [row] = await tx<{ used: number }[]>`
            SELECT coalesce(sum(byte_size), 0)::int AS used FROM user_image WHERE user_id = ${'ann'}`
          if ((row?.used ?? 0) + incomingBytes > cap) return 'refused'
          await tx`INSERT INTO user_image (user_id, byte_size) VALUES (${'ann'}, ${incomingBytes})`
          return 'accepted'
        }),
      stock: (version) =>
        db.begin(async (tx) => {
          const lock = version === 'fixed' ? tx`FOR UPDATE` : tx``
          const [row] = await tx<{ stock: number }[]>`
            SELECT stock FROM variant WHERE id = ${1} ${lock}`
          const stock = row?.stock ?? 0
          if (stock < 1) return 'sold out'
          await tx`UPDATE variant SET stock = ${stock - 1} WHERE id = ${1}`
          await tx`INSERT INTO stock_movement (variant_id, change) VALUES (${1}, ${-1})`
          return 'sold'
        }),
      webhook: (version) =>
        db.begin(async (tx) => {
          if (version === 'fixed') {
            const { count } = await tx`
              INSERT INTO unique_webhook (external_id) VALUES (${event}) ON CONFLICT DO NOTHING`
            return count === 1 ? 'handled' : 'seen before'
          }
          const seen = await tx`SELECT 1 FROM webhook WHERE external_id = ${event}`
          if (seen.length > 0) return 'seen before'
          await tx`INSERT INTO webhook (external_id) VALUES (${event})`
          return 'handled'
        }),
      job: (version, who) =>
        db.begin(async (tx) => {
          const lock = version === 'fixed' ? tx`FOR UPDATE SKIP LOCKED` : tx``
          const [row] = await tx<{ id: number }[]>`
            SELECT id FROM job WHERE worker IS NULL ORDER BY id LIMIT 1 ${lock}`
          if (row === undefined) return 'nothing to do'
          await tx`UPDATE job SET worker = ${who} WHERE id = ${row.id}`
          return `job ${row.id}`
        }),
    },
    [Symbol.asyncDispose]: () => db.end(),
  }
}
