import type { ClientBase } from 'pg'
import type { Movement } from '../checks/check-ledger.ts'

/** All movements of some books. Amounts of the workloads are small: numbers hold them exactly. */
export async function readMovements(
  client: ClientBase,
  books: readonly string[],
): Promise<Movement[]> {
  const { rows } = await client.query<Movement>(
    `SELECT m.account::text, a.book, a.key, m.seq::int, m.kind::int, m.credit::int, m.debit::int, m.hold::int,
       m.credited::int, m.debited::int, m.held::int, m.allowance::int,
       m.operation_id AS "operationId", m.hold_id::text AS "holdId"
     FROM holdfast.movement m JOIN holdfast.account a ON a.bucket = m.bucket AND a.id = m.account
     WHERE a.book = ANY ($1::text[])`,
    [books],
  )
  return rows
}
