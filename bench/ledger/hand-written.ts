import { withClient } from '@holdfast/testkit'
import type { PoolClient } from 'pg'
import { limit } from './open-ledger.ts'

/** What someone who knows PostgreSQL well writes for one quota: counters, movements, unique ids. */
export async function createHandWritten(url: string, keys: number): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(`CREATE TABLE own_balance (
      key text PRIMARY KEY, used bigint NOT NULL, seq bigint NOT NULL) WITH (fillfactor = 50)`)
    await client.query(`CREATE TABLE own_movement (
      key text NOT NULL, seq bigint NOT NULL, at timestamptz NOT NULL DEFAULT clock_timestamp(),
      amount bigint NOT NULL, used bigint NOT NULL, operation_id uuid NOT NULL UNIQUE,
      PRIMARY KEY (key, seq))`)
    await client.query(
      `INSERT INTO own_balance SELECT 'key-' || n, 0, 0 FROM generate_series(0, $1::int) AS n`,
      [keys],
    )
    await client.query('VACUUM (ANALYZE) own_balance')
  })
}

const text = `WITH taken AS (
  UPDATE own_balance SET used = used + $2, seq = seq + 1 WHERE key = $1 AND used + $2 <= $4
  RETURNING key, seq, used
)
INSERT INTO own_movement (key, seq, amount, used, operation_id)
SELECT key, seq, $2, used, $3 FROM taken
RETURNING seq, used`

/** One statement: a guarded update, and its movement if it took place. */
export async function consumeByHand(
  client: PoolClient,
  key: string,
  operationId: string,
  prepared: boolean,
): Promise<void> {
  const values = [key, 1, operationId, limit]
  const { rowCount } = await client.query(
    prepared ? { name: 'consume', text, values } : { text, values },
  )
  if (rowCount !== 1) throw new Error('there should have been enough')
}
