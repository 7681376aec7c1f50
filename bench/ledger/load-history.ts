import { hash } from 'node:crypto'
import { withClient } from '@holdfast/testkit'
import { book, limit } from './open-ledger.ts'

/** Accounts with a past: `key-0` has `deep` movements, `key-1` to `key-<others>` have `each`. */
export interface History {
  readonly deep: number
  readonly others: number
  readonly each: number
}

/**
 * Writes a past straight into the tables, as the functions would have: movements that follow from
 * each other, balances that are their last, and an operation for each. Sorted, so that the indexes
 * are filled from left to right, which is several times faster than by operations.
 */
export async function loadHistory(url: string, history: History): Promise<void> {
  const { deep, others, each } = history
  await withClient(url, async (client) => {
    await client.query('SET search_path = holdfast')
    await client.query('SET synchronous_commit = off')
    await client.query(
      `CREATE TEMP TABLE past AS
       SELECT bucket_of(key) AS bucket, key_account(key, $3, key) AS id,
         key, CASE n WHEN 0 THEN $1::bigint ELSE $2::bigint END AS depth, now() AS began
       FROM (SELECT n, 'key-' || n AS key FROM generate_series(0, $4::int) AS n) x
       ORDER BY 1, 2`,
      [deep, each, book, others],
    )
    await client.query(
      `INSERT INTO account (bucket, id, book, key, scope)
       SELECT bucket, id, $1, key, key FROM past`,
      [book],
    )
    await client.query(
      `INSERT INTO balance (bucket, account, debited, allowance, seq, moved_at)
       SELECT bucket, id, depth, $1, depth, began + depth * interval '1 microsecond' FROM past`,
      [limit],
    )
    await client.query(
      `INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited, held,
         allowance, operation_id)
       SELECT bucket, 2, id, n, began + n * interval '1 microsecond', 0, 1, 0, 0, n, 0, $1,
         md5(key || ':' || n)::uuid::text
       FROM past, generate_series(1, depth) AS n`,
      [limit],
    )
    await client.query(
      `INSERT INTO operation (bucket, owner, id, line, kind, account, amount, seq, at)
       SELECT bucket, id, md5(key || ':' || n)::uuid, 0, 2, id, 1, n, began + n * interval '1 microsecond'
       FROM past, generate_series(1, depth) AS n`,
    )
    await client.query('VACUUM (ANALYZE)')
    await client.query('CHECKPOINT')
  })
}

/** The key of account number `n` of a history. */
export function keyOf(n: number): string {
  return `key-${n}`
}

/** Any of the accounts but the deep one. */
export function anyKey({ others }: History): string {
  return keyOf(1 + Math.floor(Math.random() * others))
}

/** What the operation behind movement `number` of a key is called. */
export function loadedId(key: string, number: number): string {
  const hex = hash('md5', `${key}:${number}`)
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
