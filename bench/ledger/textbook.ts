import { withClient } from '@holdfast/testkit'
import type { Pool } from 'pg'
import type { Side } from '../harness/compare.ts'
import { book, limit } from './open-ledger.ts'

/** The pattern's own table: one row per use, an index to sum them up by. */
export async function createUsage(url: string): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`CREATE TABLE usage (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, key text NOT NULL, amount bigint NOT NULL,
      at timestamptz NOT NULL DEFAULT now())`)
    await client.query('CREATE INDEX ON usage (key) INCLUDE (amount)')
  })
}

/** `each` rows for each of `keys` keys and nothing else. */
export async function fillUsage(pool: Pool, keys: number, each: number): Promise<void> {
  await pool.query('TRUNCATE usage')
  await pool.query(
    `INSERT INTO usage (key, amount)
     SELECT 'key-' || n, 1 FROM generate_series(1, $2::int), generate_series(0, $1::int - 1) AS n`,
    [keys, each],
  )
  // As it would be in a table that autovacuum has had time for: the sum needs the index only.
  await pool.query('VACUUM (ANALYZE) usage')
}

/** BEGIN, advisory lock, SUM, INSERT, COMMIT: five round trips, as the articles teach it. */
async function consume(pool: Pool, key: string, over: () => boolean): Promise<boolean> {
  const client = await pool.connect()
  try {
    if (over()) return false
    await client.query('BEGIN')
    await client.query('SELECT pg_advisory_xact_lock(hashtext($1))', [`${book}:${key}`])
    const { rows } = await client.query<{ used: string }>(
      'SELECT coalesce(sum(amount), 0) AS used FROM usage WHERE key = $1',
      [key],
    )
    if (Number(rows[0]?.used) + 1 > limit) {
      await client.query('ROLLBACK')
      return true
    }
    await client.query('INSERT INTO usage (key, amount) VALUES ($1, 1)', [key])
    await client.query('COMMIT')
    return true
  } finally {
    client.release()
  }
}

/**
 * Many callers on the pool's few connections. Callers that still wait for a connection when the
 * slice is over go home: the pattern is not to be charged for its queue.
 */
export function textbookSide(
  pool: Pool,
  callers: number,
  label: string,
  pick: () => string,
  scene?: () => Promise<() => Promise<void>>,
): Side {
  return {
    label,
    ...(scene === undefined ? {} : { scene }),
    async measure(sliceMs) {
      const began = performance.now()
      const over = (): boolean => performance.now() > began + sliceMs
      let done = 0
      let ended = began
      const caller = async (): Promise<void> => {
        while (!over()) {
          if (!(await consume(pool, pick(), over))) return
          done += 1
          ended = performance.now()
        }
      }
      await Promise.all(Array.from({ length: callers }, caller))
      return done / ((ended - began) / 1_000)
    },
  }
}
