import type { Statement } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import type { AccountNames } from '../ledger/reads.ts'
import { isoText, millisecondsText } from './settings.ts'
import { eq, gt, minus, per, plus } from '../sql/operators.ts'

/** How much is counted: of one book, of all books together, and of open holds. */
const counted = {
  accounts: 10_000,
  allAccounts: 200_000,
  holds: 10_000,
  books: 200,
} as const

/**
 * The books, with bounded counts, as one JSON text. Names are found by hopping through an index from one
 * to the next, however many accounts each has; open holds are read in the order in which they end.
 */
export function readBooks(schema: string): Statement {
  const own = quoteIdentifier(schema)
  return {
    text: `
WITH RECURSIVE names(book) AS (
  (SELECT book FROM ${own}.accounts ORDER BY book LIMIT 1)
  UNION ALL
  SELECT (SELECT a.book FROM ${own}.accounts AS a WHERE a.book ${gt} names.book ORDER BY a.book LIMIT 1)
  FROM names WHERE names.book IS NOT NULL
), book AS MATERIALIZED (
  SELECT names.book FROM names WHERE names.book IS NOT NULL LIMIT ${counted.books}
), share AS MATERIALIZED (
  SELECT least(${counted.accounts}, ${counted.allAccounts} ${per} greatest(1, pg_catalog.count(*))) AS most FROM book
), open AS MATERIALIZED (
  SELECT h.book, h.expires_at, h.overdue FROM ${own}.open_holds AS h ORDER BY h.expires_at LIMIT ${counted.holds + 1}
), held AS MATERIALIZED (
  SELECT open.book, pg_catalog.count(*) AS holds, pg_catalog.count(*) FILTER (WHERE open.overdue) AS overdue,
    pg_catalog.min(open.expires_at) FILTER (WHERE open.overdue) AS oldest
  FROM open GROUP BY open.book
)
SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
  'book', book.book, 'accounts', least(part.accounts, share.most), 'more', part.accounts ${gt} share.most,
  'holds', coalesce(held.holds, 0), 'overdue', coalesce(held.overdue, 0),
  'moreHolds', (SELECT pg_catalog.count(*) ${gt} ${counted.holds} FROM open),
  'oldestMs', ${millisecondsText('held.oldest', 'pg_catalog.clock_timestamp()')}
) ORDER BY book.book), '[]')::pg_catalog.text AS answer
FROM book CROSS JOIN share
CROSS JOIN LATERAL (
  SELECT pg_catalog.count(*) AS accounts FROM (
    SELECT FROM ${own}.accounts AS a WHERE a.book ${eq} book.book LIMIT share.most ${plus} 1
  ) AS "each"
) AS part
LEFT JOIN held ON held.book ${eq} book.book`,
    values: [],
  }
}

const windows = 50

/**
 * What a key stands at, window after window, the latest first, each compared with what its last movement
 * left, or its checkpoint where that is gone; and its grants in burn order. One JSON text.
 */
export function readAccount(schema: string, { bucket, book, key, scope }: AccountNames): Statement {
  const own = quoteIdentifier(schema)
  const off = (column: string): string =>
    `pg_catalog.abs(b.${column} ${minus} coalesce(m.${column}, c.${column}, 0))`
  return {
    text: `
WITH b AS MATERIALIZED (
  SELECT * FROM ${own}.balances
  WHERE bucket ${eq} $1::pg_catalog.text::pg_catalog.int2 AND book ${eq} $2::pg_catalog.text AND key ${eq} $3::pg_catalog.text AND scope ${eq} $4::pg_catalog.text
  ORDER BY window_start DESC NULLS LAST LIMIT ${windows}
)
SELECT pg_catalog.json_build_object(
  'accounts', coalesce((
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
      'windowStart', ${isoText('b.window_start')}, 'windowEnd', ${isoText('b.window_end')},
      'credited', b.credited::pg_catalog.text, 'debited', b.debited::pg_catalog.text, 'held', b.held::pg_catalog.text,
      'allowance', b.allowance::pg_catalog.text, 'available', b.available::pg_catalog.text, 'limitIsSet', b.limit_is_set,
      'sequence', b.sequence::pg_catalog.text, 'movedAt', ${isoText('b.moved_at')}, 'dueAt', ${isoText('b.due_at')},
      'drift', (${off('credited')} ${plus} ${off('debited')} ${plus} ${off('held')} ${plus} ${off('sequence')}
        ${plus} pg_catalog.abs(b.allowance ${minus} coalesce(m.allowance, c.allowance, b.allowance)))::pg_catalog.text
    ) ORDER BY b.window_start DESC NULLS LAST)
    FROM b
    LEFT JOIN LATERAL (
      SELECT x.sequence, x.credited, x.debited, x.held, x.allowance FROM ${own}.movements AS x
      WHERE x.bucket ${eq} $1::pg_catalog.text::pg_catalog.int2 AND x.account ${eq} b.account
      ORDER BY x.sequence DESC LIMIT 1
    ) AS m ON true
    LEFT JOIN ${own}.checkpoints AS c ON c.bucket ${eq} $1::pg_catalog.text::pg_catalog.int2 AND c.account ${eq} b.account
  ), '[]'),
  'grants', coalesce((
    SELECT pg_catalog.json_agg(pg_catalog.json_build_object(
      'grantId', g.grant_id, 'amount', g.amount::pg_catalog.text, 'remaining', g.remaining::pg_catalog.text,
      'priority', g.priority, 'expiresAt', ${isoText('g.expires_at')}, 'state', g.state, 'onlyFor', g.only_for
    ) ORDER BY g.priority, g.expires_at, g.grant_id)
    FROM (
      SELECT x.* FROM b CROSS JOIN LATERAL (
        SELECT * FROM ${own}.credit_grants AS y
        WHERE y.bucket ${eq} $1::pg_catalog.text::pg_catalog.int2 AND y.account ${eq} b.account AND y.state ${eq} ANY ('{pending,active}')
          AND y.remaining ${gt} 0
        LIMIT 200
      ) AS x LIMIT 200
    ) AS g
  ), '[]')
)::pg_catalog.text AS answer`,
    values: [String(bucket), book, key, scope],
  }
}

/** Open holds, those that end first come first: the overdue are at the top. One JSON text. */
export function readOpenHolds(schema: string, limit: number): Statement {
  return {
    text: `
SELECT coalesce(pg_catalog.json_agg(pg_catalog.json_build_object(
  'book', h.book, 'key', h.key, 'scope', h.scope, 'holdId', h.hold_id, 'amount', h.amount::pg_catalog.text,
  'expiresAt', ${isoText('h.expires_at')}, 'overdue', h.overdue, 'operationId', h.operation_id,
  'overdueMs', CASE WHEN h.overdue THEN ${millisecondsText('h.expires_at', 'pg_catalog.clock_timestamp()')} END
) ORDER BY h.expires_at, h.hold_id), '[]')::pg_catalog.text AS answer
FROM (
  SELECT * FROM ${quoteIdentifier(schema)}.open_holds ORDER BY expires_at LIMIT $1::pg_catalog.text::pg_catalog.int4
) AS h`,
    values: [String(limit)],
  }
}
