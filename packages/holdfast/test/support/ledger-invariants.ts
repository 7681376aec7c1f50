import { hash } from 'node:crypto'
import type pg from 'pg'

/**
 * What must be true of a ledger at any moment, each as a query for what breaks it. Written apart
 * from `audit`, so that one can find what the other overlooks.
 */
const invariants: Readonly<Record<string, string>> = {
  'a balance is what its last movement says': `
    SELECT b.account FROM {balance} b
    LEFT JOIN LATERAL (
      SELECT * FROM {movement} m
      WHERE m.bucket = b.bucket AND m.account = b.account ORDER BY m.seq DESC LIMIT 1
    ) m ON true
    WHERE (b.credited, b.debited, b.held, b.seq)
      IS DISTINCT FROM (coalesce(m.credited, 0), coalesce(m.debited, 0), coalesce(m.held, 0), coalesce(m.seq, 0))`,
  'every movement follows from the one before, without a gap': `
    SELECT account FROM (
      SELECT m.*, lag(credited, 1, 0::bigint) OVER w AS c, lag(debited, 1, 0::bigint) OVER w AS d,
        lag(held, 1, 0::bigint) OVER w AS h, lag(seq, 1, 0::bigint) OVER w AS s,
        lag(at, 1, '-infinity') OVER w AS before
      FROM {movement} m WINDOW w AS (PARTITION BY bucket, account ORDER BY seq)
    ) m
    WHERE credited <> c + credit OR debited <> d + debit OR held <> h + hold OR seq <> s + 1
      OR at < before`,
  'credited and debited only grow, and nothing is below zero': `
    SELECT account FROM {movement} x
    WHERE least(credit, debit, credited, debited, held) < 0`,
  'a wall is never crossed': `
    SELECT m.account FROM {movement} m
    JOIN {balance} b ON b.bucket = m.bucket AND b.account = m.account AND b.walled
    WHERE m.credited - m.debited - m.held + m.allowance < 0`,
  'held is the sum of the open holds': `
    SELECT b.account FROM {balance} b
    WHERE b.held <> (
      SELECT coalesce(sum(h.amount), 0) FROM {hold} h
      WHERE h.bucket = b.bucket AND h.account = b.account AND h.state = 0)`,
  'a hold was made once and has ended at most once': `
    SELECT h.id FROM {hold} h
    CROSS JOIN LATERAL (
      SELECT count(*) FILTER (WHERE kind = 3) AS made, count(*) FILTER (WHERE hold < 0) AS ended
      FROM {movement} m
      WHERE m.bucket = h.bucket AND m.account = h.account AND m.hold_id = h.id
    ) m
    WHERE made <> 1 OR ended <> (h.state <> 0)::int OR h.amount <= 0`,
  'nothing is due later than the balance says': `
    SELECT b.account FROM {balance} b
    JOIN {hold} h ON h.bucket = b.bucket AND h.account = b.account AND h.state = 0
    WHERE h.expires_at < b.due_at`,
  'an operation has its movement': `
    SELECT o.id FROM {operation} o
    LEFT JOIN {movement} m ON m.account = o.account AND m.seq = o.seq AND m.at = o.at
    WHERE o.seq IS NOT NULL AND (m.seq IS NULL OR m.kind <> o.kind)`,
  'an operation is applied once': `
    SELECT operation_id FROM {movement} x
    WHERE kind IN (1, 2, 3, 7, 8, 11, 12, 13)
    GROUP BY account, operation_id, kind HAVING count(*) > 1`,
  'no more is given back than was taken': `
    SELECT id FROM {operation} x WHERE returned NOT BETWEEN 0 AND abs(amount)
      AND NOT (kind = 3 AND returned >= 0)`,
}

/** Which part of which ledger to look at. */
export interface Looked {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** @defaultValue all scopes */
  readonly scope?: string
}

/** The invariants that are broken; empty if all is well. */
export async function brokenInvariants(
  observer: pg.Pool,
  { schema = 'holdfast', scope }: Looked = {},
): Promise<string[]> {
  const all = (table: string): string => `${schema}.${table}`
  const some = (table: string): string =>
    `(SELECT * FROM ${all(table)} WHERE account IN (SELECT id FROM ${all('account')} WHERE scope = $1))`
  const values = scope === undefined ? [] : [scope]
  const parts = Object.entries(invariants).map(([name, text]) => {
    const query = text.replaceAll(/\{(\w+)\}/g, (_, table: string) =>
      scope === undefined ? all(table) : some(table),
    )
    return `SELECT '${name}' AS name, (
      SELECT json_agg(b)::text FROM (SELECT * FROM (${query}) q LIMIT 3) b) AS found`
  })
  // One statement, so that all of it is seen at one moment, and prepared: tests look very often.
  const text = parts.join(' UNION ALL ')
  const { rows } = await observer.query<{ name: string; found: string | null }>({
    name: hash('md5', text),
    text,
    values,
  })
  return rows.flatMap(({ name, found }) => (found === null ? [] : [`${name}: ${found}`]))
}
