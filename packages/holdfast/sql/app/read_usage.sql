-- What was used of a book, by period and, if asked for, by key, scope and feature: as JSON. Used is what was taken, and
-- settled of what was put aside, less what was refunded; of a rolling window what was put aside, less what was released.
-- "over" is how much of it went beyond the limit at that time, or below zero where there is none; what is refunded is
-- first of all that. It is counted from the first movement in this time on.
-- "complete" says that no movement of this time was dropped, and nothing was forgotten that tells what a refund was of.
-- Null of a rate: what flows in is booked together with what is taken and given back.
CREATE OR REPLACE FUNCTION :"schema".read_usage(
  book text, since timestamptz, until timestamptz, unit text, zone text, by_key boolean, by_scope boolean,
  by_feature boolean, only_key text, only_scope text, most integer
) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  declaration CONSTANT jsonb := coalesce((SELECT k.declaration FROM book k WHERE k.name = book), '{}');
  rolling CONSTANT boolean := declaration ? 'rolling';
  limited CONSTANT boolean := declaration ->> 'as' = 'quota';
  room CONSTANT integer := greatest(1, least(coalesce(most, 1), 10001));
  dropped CONSTANT boolean := EXISTS (SELECT FROM horizon h WHERE h.operations > since)
    AND since < (
      SELECT min(to_date(substr(c.relname, 10), 'YYYYMM')::timestamp AT TIME ZONE 'UTC')
      FROM pg_inherits i
      JOIN pg_class c ON c.oid = i.inhrelid
      WHERE i.inhparent = 'movement'::regclass AND c.relname ~ '^movement_[0-9]{6}$'
    );
  page json;
  forgotten boolean;
BEGIN
  IF declaration ? 'rate' THEN RETURN NULL; END IF;
  SELECT json_agg(json_build_object('period', micros(u.period)::text, 'key', u.key, 'scope', u.scope,
      'feature', u.feature, 'used', u.used::text, 'refunded', u.refunded::text, 'over', u.over::text,
      'movements', u.movements) ORDER BY u.period, u.key, u.scope, u.feature),
    coalesce(bool_or(u.forgotten), false)
  INTO page, forgotten
  FROM (
    SELECT window_start(unit, zone, r.at) AS period, CASE WHEN by_key THEN r.key END AS key,
      CASE WHEN by_scope THEN r.scope END AS scope, w.feature,
      sum(r.taken - r.given) AS used, sum(r.given) AS refunded, count(*) AS movements,
      sum(r.excess - r.excess_before) AS over, bool_or(q.looks AND w.found IS NULL) AS forgotten
    FROM (
      -- A sum that never falls below zero: the plain sum, less the lowest that it was.
      SELECT c.*, c.total - c.low AS excess, coalesce(lag(c.total - c.low) OVER one, c.before) AS excess_before
      FROM (
        SELECT b.*, least(0, min(b.total) OVER one) AS low
        FROM (
          SELECT t.*, first_value(t.beyond_before) OVER one AS before,
            first_value(t.beyond_before) OVER one
              + sum(CASE WHEN t.given > 0 THEN -t.given ELSE least(t.taken, t.beyond) END) OVER one AS total
          FROM (
            SELECT m.bucket, m.account, m.seq, m.at, m.kind, m.note, m.hold_id, m.operation_id, a.key, a.scope,
              CASE WHEN rolling THEN greatest(m.hold, 0) ELSE m.debit END AS taken,
              CASE WHEN rolling THEN greatest(-m.hold, 0) ELSE m.credit END AS given,
              -- What is only put aside is not used yet, and may never be.
              greatest(m.debited - m.credited - limit_then, 0) AS beyond,
              greatest(m.debited - m.debit - m.credited + m.credit - limit_then, 0) AS beyond_before
            FROM movement m
            JOIN account a ON a.bucket = m.bucket AND a.id = m.account
            CROSS JOIN LATERAL (SELECT CASE WHEN limited THEN m.allowance ELSE 0 END AS limit_then) l
            WHERE m.at >= since AND m.at < until AND a.book = book AND NOT away(m.bucket)
              AND (only_key IS NULL OR a.key = only_key) AND (only_scope IS NULL OR a.scope = only_scope)
              AND m.kind = ANY (CASE WHEN rolling THEN '{3,5}'::smallint[] ELSE '{2,4,7,13}'::smallint[] END)
          ) t
          WINDOW one AS (PARTITION BY t.bucket, t.account ORDER BY t.seq)
        ) b
        WINDOW one AS (PARTITION BY b.bucket, b.account ORDER BY b.seq)
      ) c
      WINDOW one AS (PARTITION BY c.bucket, c.account ORDER BY c.seq)
    ) r
    -- What is settled, released or given back was used for what it was taken for.
    CROSS JOIN LATERAL (
      SELECT by_feature AND NOT coalesce(r.note ? 'feature', false) AND (r.hold_id IS NOT NULL OR r.kind = 7) AS looks
    ) q
    LEFT JOIN LATERAL (
      SELECT r.note ->> 'feature' AS feature, NULL::boolean AS found WHERE by_feature AND NOT q.looks
      UNION ALL
      SELECT x.note ->> 'feature', true
      FROM hold h
      JOIN movement x ON x.bucket = h.bucket AND x.account = h.account AND x.seq = h.made_seq
      WHERE q.looks AND h.bucket = r.bucket AND h.id = r.hold_id AND h.account = r.account
      UNION ALL (
        SELECT x.note ->> 'feature', true
        FROM operation p
        JOIN operation o ON o.bucket = p.bucket AND o.id = p.ref AND o.owner = p.owner AND o.account = p.account
        JOIN movement x ON x.bucket = o.bucket AND x.account = o.account AND x.seq = o.seq
        WHERE q.looks AND r.hold_id IS NULL AND p.bucket = r.bucket AND p.account = r.account AND p.seq = r.seq
          AND p.id = CASE
            WHEN r.operation_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN r.operation_id::uuid
            ELSE hash_name(r.operation_id) END
        ORDER BY o.line
        LIMIT 1
      )
    ) w ON true
    GROUP BY 1, 2, 3, 4
    ORDER BY 1, 2, 3, 4
    LIMIT room
  ) u;
  RETURN json_build_object('rows', coalesce(page, '[]'), 'complete', NOT (dropped OR forgotten));
END
$$;
