import type pg from 'pg'
import { expect } from 'vitest'
import { accountId } from '../../../src/ledger/account-id.ts'
import type { PgFixture } from '../../support/pg-fixture.ts'

/** What tests see of an account's grants and movements, directly. */
export interface CreditsRoom {
  /** Movements in order, such as `grant +100`, `lapse -20`, `hold [30]`. */
  movements(key: string): Promise<string[]>
  /** Allocations in order, such as `2: 30 of early`, `2: 10 owed`, `4: 10 of late, arrears`. */
  allocations(key: string): Promise<string[]>
  /** `used/remaining/lapsed` by the operation that made the grant. */
  grants(key: string): Promise<Record<string, string>>
  /** Moves a grant, by the operation that made it, so that it begins or ends in the past. */
  makeDue(key: string, operationId: string, column: 'effective_at' | 'expires_at'): Promise<void>
  /** The same for open holds, all or that of one operation. */
  makeHoldsDue(key: string, operationId?: string): Promise<void>
  /** Throws unless every grant and every movement adds up, of one account or of all. */
  assertAddsUp(key?: string): Promise<void>
}

export function creditsRoom(fixture: PgFixture, book: string): CreditsRoom {
  const query = async <T extends object>(text: string, values: unknown[] = []): Promise<T[]> =>
    (await fixture.observer.query<T & pg.QueryResultRow>(text, values)).rows
  const account = (key: string): string => accountId(key, book, key).base
  const buckets = (key?: string): string => {
    if (key === undefined) return ''
    const { bucket } = accountId(key, book, key)
    return `${bucket}::smallint, ${bucket}::smallint`
  }
  const touchDue = async (key: string): Promise<void> => {
    await query(`UPDATE holdfast.balance SET due_at = '-infinity' WHERE account = $1`, [
      account(key),
    ])
  }
  const problems = async (key?: string): Promise<string[]> => {
    const only = key === undefined ? '' : `AND account = '${account(key)}'`
    const checked = await query<{ problem: string }>(
      `SELECT problem FROM holdfast.check_grants(${buckets(key)}) WHERE true ${only}`,
    )
    // Told by the operations, which the check does not look at: what was taken and not refunded is
    // noted to the unit, from the account's first grant on.
    const taken = await query<{ problem: string }>(`
      SELECT format('movement %s took %s, %s are noted', o.seq, o.amount - o.returned, x.noted) AS problem
      FROM (SELECT * FROM holdfast.operation WHERE true ${only}) o
      JOIN holdfast.balance b ON b.account = o.account AND b.granted
      CROSS JOIN LATERAL (
        SELECT coalesce(sum(x.amount - x.returned), 0) AS noted FROM holdfast.allocation x
        WHERE x.account = o.account AND x.seq = o.seq AND NOT x.arrears
      ) x
      WHERE o.kind = 2 AND x.noted <> o.amount - o.returned AND o.seq > (
        SELECT min(g.ordinal) FROM holdfast.credit_grant g WHERE g.account = o.account
      )`)
    const chain = await query<{ problem: string }>(`
      SELECT format('movement %s does not follow from the one before', v.seq) AS problem
      FROM (
        SELECT m.*, lag(credited, 1, 0) OVER w AS c, lag(debited, 1, 0) OVER w AS d,
          lag(held, 1, 0) OVER w AS h, lag(seq, 1, 0) OVER w AS s
        FROM (SELECT * FROM holdfast.movement WHERE true ${only}) m
        WINDOW w AS (PARTITION BY bucket, account ORDER BY seq)
      ) v
      WHERE credited <> c + credit OR debited <> d + debit OR held <> h + hold OR seq <> s + 1`)
    return [...checked, ...taken, ...chain].map(({ problem }) => problem)
  }
  return {
    async movements(key) {
      const rows = await query<{ text: string }>(
        `SELECT concat_ws(' ', holdfast.movement_kind(kind), '+' || nullif(credit, 0),
           '-' || nullif(debit, 0), '[' || nullif(hold, 0) || ']') AS text
         FROM holdfast.movement WHERE account = $1 ORDER BY seq`,
        [account(key)],
      )
      return rows.map(({ text }) => text)
    },
    async allocations(key) {
      const rows = await query<{ text: string }>(
        `SELECT concat(x.seq, ': ', x.amount - x.returned,
           coalesce(' of ' || g.operation_id, ' owed'), CASE WHEN x.arrears THEN ', arrears' END) AS text
         FROM holdfast.allocation x
         LEFT JOIN holdfast.credit_grant g ON g.account = x.account AND g.id = x.grant_id
         WHERE x.account = $1 ORDER BY x.seq, x.ordinal`,
        [account(key)],
      )
      return rows.map(({ text }) => text)
    },
    async grants(key) {
      const rows = await query<{ name: string; text: string }>(
        `SELECT operation_id || CASE WHEN rolled_from IS NULL THEN '' ELSE ', rolled' END AS name,
           concat_ws('/', used, remaining, lapsed) AS text
         FROM holdfast.credit_grants WHERE account = $1`,
        [account(key)],
      )
      return Object.fromEntries(rows.map(({ name, text }) => [name, text]))
    },
    async makeDue(key, operationId, column) {
      const rows = await query(
        `UPDATE holdfast.credit_grant SET ${column} = clock_timestamp() - interval '1 second'
         WHERE account = $1 AND operation_id = $2 AND state < 2 RETURNING 1`,
        [account(key), operationId],
      )
      expect(rows).toHaveLength(1)
      await touchDue(key)
    },
    async makeHoldsDue(key, operationId) {
      await query(
        `UPDATE holdfast.hold SET expires_at = clock_timestamp() - interval '1 second'
         WHERE account = $1 AND state = 0 AND operation_id = coalesce($2, operation_id)`,
        [account(key), operationId],
      )
      await touchDue(key)
    },
    async assertAddsUp(key) {
      expect(await problems(key)).toEqual([])
    },
  }
}
