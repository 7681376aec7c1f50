-- What was used of a book, by period and, if asked for, by key, scope and feature: as JSON. Used is what was taken, and
-- settled of what was put aside, less what was refunded; of a rolling window what was put aside, less what was released.
-- "over" is how much of it went beyond the limit, or below zero where there is none.
-- "complete" says that no movement of this time was dropped, and no id that tells what a refund was of.
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
      WHERE i.inhparent = 'movement'::regclass AND c.relname ~ '^movement_\d{6}$'
    );
  page json;
BEGIN
  IF declaration ? 'rate' THEN RETURN NULL; END IF;
  SELECT json_agg(json_build_object('period', micros(u.period)::text, 'key', u.key, 'scope', u.scope,
    'feature', u.feature, 'used', u.used::text, 'refunded', u.refunded::text, 'over', u.over::text,
    'movements', u.movements) ORDER BY u.period, u.key, u.scope, u.feature) INTO page
  FROM (
    SELECT window_start(unit, zone, m.at) AS period, CASE WHEN by_key THEN a.key END AS key,
      CASE WHEN by_scope THEN a.scope END AS scope, t.feature,
      sum(t.taken - t.given) AS used, sum(t.given) AS refunded, count(*) AS movements,
      sum(greatest(t.beyond, 0) - greatest(t.beyond - m.debit + m.credit, 0)) AS over
    FROM movement m
    JOIN account a ON a.bucket = m.bucket AND a.id = m.account
    CROSS JOIN LATERAL (
      -- What is settled, released or given back was used for what it was taken for.
      SELECT CASE WHEN by_feature THEN coalesce(m.note ->> 'feature', CASE
          WHEN m.hold_id IS NOT NULL THEN (
            SELECT x.note ->> 'feature'
            FROM hold h
            JOIN movement x ON x.bucket = h.bucket AND x.account = h.account AND x.seq = h.made_seq
            WHERE h.bucket = m.bucket AND h.id = m.hold_id AND h.account = m.account
          )
          WHEN m.kind IN (7, 13) THEN (
            SELECT x.note ->> 'feature'
            FROM operation r
            JOIN operation o ON o.bucket = r.bucket AND o.id = r.ref AND o.owner = r.owner
              AND o.account = r.account
            JOIN movement x ON x.bucket = o.bucket AND x.account = o.account AND x.seq = o.seq
            WHERE r.bucket = m.bucket AND r.account = m.account AND r.seq = m.seq AND r.id = CASE
              WHEN m.operation_id ~ '^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$' THEN m.operation_id::uuid
              ELSE hash_name(m.operation_id) END
            ORDER BY o.line
            LIMIT 1
          )
        END) END AS feature,
        CASE WHEN rolling THEN greatest(m.hold, 0) ELSE m.debit END AS taken,
        CASE WHEN rolling THEN greatest(-m.hold, 0) ELSE m.credit END AS given,
        -- What is only put aside is not used yet, and may never be.
        m.debited - m.credited - CASE WHEN limited THEN m.allowance ELSE 0 END AS beyond
    ) t
    WHERE m.at >= since AND m.at < until AND a.book = book AND NOT away(m.bucket)
      AND (only_key IS NULL OR a.key = only_key) AND (only_scope IS NULL OR a.scope = only_scope)
      AND m.kind = ANY (CASE WHEN rolling THEN '{3,5}'::smallint[] ELSE '{2,4,7,13}'::smallint[] END)
    GROUP BY 1, 2, 3, 4
    ORDER BY 1, 2, 3, 4
    LIMIT room
  ) u;
  RETURN json_build_object('rows', coalesce(page, '[]'), 'complete',
    NOT dropped AND NOT (by_feature AND EXISTS (SELECT FROM horizon h WHERE h.operations > since)));
END
$$;
