import { witnessOf } from './ledger-witness.ts'

/** One promise, as a query that finds what breaks it: a number of cases and an example. */
export interface Check {
  readonly promise: 'bound' | 'chain' | 'once' | 'kept' | 'absent' | 'replay' | 'audit'
  readonly broken: string
  readonly sql: string
}

/**
 * Every movement, every answer. Kinds 4 and 5 settle and release a hold; 6 and 9 are what falls due
 * by itself, the expiry of a hold or of a grant.
 * What callers were told and what the tables hold must agree.
 */
export function checksOf(schema: string): Check[] {
  const seen = witnessOf(schema)
  const found = `SELECT count(*)::int AS cases, min(x.what) AS example FROM`
  const ended = `('settle', 'release', 'extend')`
  // What came back to a grant that has ended lapses right after; the answer is then the one after that.
  const told = (movement: string): string =>
    `EXISTS (SELECT FROM ${schema}.movement t WHERE t.bucket = ${movement}.bucket AND t.account = ${movement}.account
      AND (t.seq = ${movement}.seq OR t.kind = 9 AND t.seq = ${movement}.seq + 1)
      AND (t.seq, t.credited, t.debited, t.held) = (s.seq, s.credited, s.debited, s.held))`
  return [
    {
      promise: 'bound',
      broken: 'movements left less than nothing available',
      sql: `${found} (
        SELECT format('%s at movement %s', account, seq) AS what FROM ${schema}.movement
        WHERE credited - debited - held + allowance < 0
      ) x`,
    },
    {
      promise: 'chain',
      broken: 'movements do not follow from the one before',
      sql: `${found} (
        SELECT format('%s at movement %s', account, seq) AS what
        FROM (
          SELECT m.*, lag(seq, 1, 0::bigint) OVER w AS seq_before,
            lag(credited, 1, 0::bigint) OVER w AS credited_before,
            lag(debited, 1, 0::bigint) OVER w AS debited_before,
            lag(held, 1, 0::bigint) OVER w AS held_before
          FROM ${schema}.movement m WINDOW w AS (PARTITION BY bucket, account ORDER BY seq, at)
        ) m
        WHERE seq <> seq_before + 1 OR credited <> credited_before + credit
          OR debited <> debited_before + debit OR held <> held_before + hold
      ) x`,
    },
    {
      promise: 'once',
      broken: 'operation ids were applied more than once',
      sql: `${found} (
        SELECT format('%s, %s times', operation_id, count(*)) AS what FROM ${schema}.movement
        WHERE kind NOT IN (4, 5, 6, 9) GROUP BY operation_id HAVING count(*) > 1
      ) x`,
    },
    {
      promise: 'once',
      broken: 'holds were ended more than once',
      sql: `${found} (
        SELECT format('%s, %s times', hold_id, count(*)) AS what FROM ${schema}.movement
        WHERE kind IN (4, 5, 6) GROUP BY hold_id HAVING count(*) > 1
      ) x`,
    },
    {
      promise: 'kept',
      broken: 'accepted operations have no movement like the one their caller was told of',
      sql: `${found} (
        SELECT s.kind || ' ' || s.id AS what FROM ${seen} s
        LEFT JOIN (${schema}.movement m JOIN ${schema}.account a ON a.bucket = m.bucket AND a.id = m.account)
          ON m.operation_id = s.id AND m.kind NOT IN (4, 5, 6, 9)
        WHERE s.outcome IN ('accepted', 'replayed') AND s.kind NOT IN ${ended}
          AND (m.seq IS NULL OR a.key <> s.key OR m.credit + m.debit + m.hold <> s.amount
            OR NOT ${told('m')})
      ) x`,
    },
    {
      promise: 'kept',
      broken: 'holds that were said to be ended have no movement that ends them so',
      sql: `${found} (
        SELECT s.kind || ' ' || s.id AS what FROM ${seen} s
        LEFT JOIN ${schema}.movement m ON m.hold_id = s.id::uuid
          AND m.kind = CASE s.kind WHEN 'settle' THEN 4 ELSE 5 END
        WHERE s.outcome IN ('accepted', 'replayed') AND s.kind IN ('settle', 'release')
          AND (m.seq IS NULL OR m.debit <> coalesce(s.amount, 0) OR NOT ${told('m')})
      ) x`,
    },
    {
      promise: 'absent',
      broken: 'movements are of operations that nobody was told were accepted',
      sql: `${found} (
        SELECT m.kind || ' ' || m.operation_id AS what FROM ${schema}.movement m
        WHERE m.kind NOT IN (6, 9) AND NOT EXISTS (
          SELECT FROM ${seen} s WHERE s.outcome IN ('accepted', 'replayed')
            AND s.id = CASE WHEN m.kind IN (4, 5) THEN m.hold_id::text ELSE m.operation_id END
            AND (m.kind NOT IN (4, 5) OR s.kind = CASE m.kind WHEN 4 THEN 'settle' ELSE 'release' END)
        )
      ) x`,
    },
    {
      promise: 'replay',
      broken: 'operations were accepted by more or less than one call, or answered differently',
      sql: `${found} (
        SELECT format('%s %s', kind, id) AS what FROM ${seen}
        WHERE outcome IN ('accepted', 'replayed') AND kind <> 'extend'
        GROUP BY kind, id
        HAVING count(*) FILTER (WHERE outcome = 'accepted') <> 1
          OR count(DISTINCT (seq, credited, debited, held)) > 1
      ) x`,
    },
    {
      promise: 'replay',
      broken: 'holds were said to be ended by more than one call',
      sql: `${found} (
        SELECT format('%s', id) AS what FROM ${seen}
        WHERE outcome = 'accepted' AND kind IN ('settle', 'release')
        GROUP BY id HAVING count(*) > 1
      ) x`,
    },
    ...auditOf(schema, found),
  ]
}

/** What has to add up in the tables, whoever was told what. */
function auditOf(schema: string, found: string): Check[] {
  return [
    {
      promise: 'audit',
      broken: 'balances are not what their last movement says',
      sql: `${found} (
        SELECT format('%s', b.account) AS what FROM ${schema}.balance b
        LEFT JOIN LATERAL (
          SELECT * FROM ${schema}.movement m WHERE m.bucket = b.bucket AND m.account = b.account
          ORDER BY m.seq DESC LIMIT 1
        ) m ON true
        WHERE (b.seq, b.credited, b.debited, b.held) IS DISTINCT FROM
          (coalesce(m.seq, 0), coalesce(m.credited, 0), coalesce(m.debited, 0), coalesce(m.held, 0))
      ) x`,
    },
    {
      promise: 'audit',
      broken: 'accounts do not hold what their open holds add up to',
      sql: `${found} (
        SELECT format('%s', b.account) AS what FROM ${schema}.balance b
        LEFT JOIN (
          SELECT bucket, account, sum(amount) AS amount FROM ${schema}.hold WHERE state = 0 GROUP BY 1, 2
        ) h ON h.bucket = b.bucket AND h.account = b.account
        WHERE b.held <> coalesce(h.amount, 0)
      ) x`,
    },
    {
      promise: 'audit',
      broken: 'holds have ended otherwise than their movement says',
      sql: `${found} (
        SELECT format('%s', h.id) AS what FROM ${schema}.hold h
        LEFT JOIN ${schema}.movement m ON m.bucket = h.bucket AND m.account = h.account
          AND m.hold_id = h.id AND m.kind IN (4, 5, 6)
        WHERE h.state IS DISTINCT FROM
          CASE m.kind WHEN 4 THEN 1 WHEN 5 THEN 2 WHEN 6 THEN 3 ELSE 0 END
          OR h.seq IS DISTINCT FROM m.seq
      ) x`,
    },
    {
      promise: 'audit',
      broken: 'operations and movements do not belong together',
      sql: `${found} (
        SELECT format('%s', coalesce(o.account, m.account)) AS what
        FROM (SELECT * FROM ${schema}.operation WHERE seq IS NOT NULL) o
        FULL JOIN (SELECT * FROM ${schema}.movement WHERE kind NOT IN (4, 5, 6, 9)) m
          ON m.account = o.account AND m.seq = o.seq AND m.at = o.at AND m.kind = o.kind
        WHERE o.account IS NULL OR m.account IS NULL
      ) x`,
    },
    {
      promise: 'audit',
      broken: 'operations gave back more than they took',
      sql: `${found} (
        SELECT format('%s', o.id) AS what FROM ${schema}.operation o
        WHERE o.returned > abs(o.amount) OR o.returned < 0
      ) x`,
    },
    {
      promise: 'audit',
      broken: 'refunds are not what their operations gave back',
      sql: `${found} (
        SELECT format('%s and %s', r.refunded, o.returned) AS what
        FROM (SELECT coalesce(sum(credit), 0) AS refunded FROM ${schema}.movement WHERE kind = 7) r,
          (SELECT coalesce(sum(returned), 0) AS returned FROM ${schema}.operation) o
        WHERE r.refunded <> o.returned
      ) x`,
    },
  ]
}
