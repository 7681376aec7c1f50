-- Writes down what locks are called and how they were used, and says how many names are new. Called behind
-- the work of a process, outside of its transactions: it takes rows in the order of their keys and gives
-- up rather than wait for long.
--
-- p_names    [{id: '1:<bigint>' | '2:<high>,<low>', name, namespace}]; in place of id also hashtext, a text
--            that this server hashes, with high for a pair. At most 2,000 count. The table keeps 10,000,
--            and for a moment a few hundred more
-- p_minutes  [{namespace, acquired, timeouts, busy, wait, waitMaxMs, hold, holdMaxMs}], added to the current
--            minute. A minute has at most 100 namespaces, the rest is '(other)'. Kept for a day
CREATE OR REPLACE FUNCTION :"schema".note_locks(p_names jsonb, p_minutes jsonb) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET lock_timeout = '1s'
AS $$
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  this_minute CONSTANT timestamptz := date_trunc('minute', moment, 'UTC');
  added integer;
  surplus bigint;
  opened integer;
BEGIN
  WITH given AS MATERIALIZED (
    SELECT DISTINCT ON (k.space, k.number) k.space, k.number, left(e.name, 1000) AS name,
      left(e.namespace, 200) AS namespace
    FROM (SELECT * FROM jsonb_to_recordset(p_names) AS r(
            id text, hashtext text, high integer, name text, namespace text) LIMIT 2000) e
    CROSS JOIN LATERAL (
      SELECT CASE WHEN e.id IS NULL THEN CASE WHEN e.high IS NULL THEN 1 ELSE 2 END
                  ELSE left(e.id, 1)::smallint END::smallint AS space,
             CASE WHEN e.id LIKE '1:%' THEN substr(e.id, 3)::bigint
                  WHEN e.id LIKE '2:%' THEN (split_part(substr(e.id, 3), ',', 1)::bigint << 32)
                    | (split_part(e.id, ',', 2)::bigint & 4294967295)
                  WHEN e.high IS NULL THEN hashtext(e.hashtext)::bigint
                  ELSE (e.high::bigint << 32) | (hashtext(e.hashtext)::bigint & 4294967295) END AS number
    ) k
    WHERE k.number IS NOT NULL AND e.name IS NOT NULL AND e.namespace IS NOT NULL
    ORDER BY k.space, k.number
  ), seen AS (
    -- A name that was seen this very minute is left alone, so that most calls write nothing.
    UPDATE lock_name n SET seen_at = this_minute
    FROM (
      SELECT x.bucket, x.space, x.number
      FROM given g JOIN lock_name x ON x.bucket = 0 AND x.space = g.space AND x.number = g.number
      WHERE x.seen_at < this_minute
      ORDER BY x.space, x.number
      -- Whoever has it is writing the same.
      FOR NO KEY UPDATE OF x SKIP LOCKED
    ) old
    WHERE n.bucket = old.bucket AND n.space = old.space AND n.number = old.number
  ), new AS (
    INSERT INTO lock_name (bucket, space, number, name, namespace, seen_at)
    SELECT 0, g.space, g.number, g.name, g.namespace, this_minute
    FROM given g
    WHERE NOT EXISTS (
      SELECT FROM lock_name x WHERE x.bucket = 0 AND x.space = g.space AND x.number = g.number)
    ORDER BY g.space, g.number
    ON CONFLICT DO NOTHING
    RETURNING 1
  )
  SELECT count(*) INTO added FROM new;
  -- Counting is most of the work, so it is left to one call of several where few names are new.
  IF random() * 250 < added THEN
    SELECT count(*) - 10000 INTO surplus FROM lock_name;
    DELETE FROM lock_name n USING (
      SELECT x.bucket, x.space, x.number FROM lock_name x
      ORDER BY x.seen_at LIMIT greatest(0, surplus)
      FOR UPDATE SKIP LOCKED
    ) old
    WHERE n.bucket = old.bucket AND n.space = old.space AND n.number = old.number;
  END IF;

  WITH room AS MATERIALIZED (
    SELECT array_agg(m.namespace) AS taken, 100 - count(*) AS free
    FROM lock_minute m WHERE m.bucket = 0 AND m.minute = this_minute
  ), given AS MATERIALIZED (
    SELECT left(r.namespace, 200) AS namespace, r.acquired, r.timeouts, r.busy, r.wait, r."waitMaxMs" AS wait_max,
      r.hold, r."holdMaxMs" AS hold_max,
      coalesce(left(r.namespace, 200) = ANY (room.taken), false) AS known, room.free
    FROM room CROSS JOIN jsonb_to_recordset(p_minutes) AS r(
      namespace text, acquired bigint, timeouts bigint, busy bigint,
      wait bigint[], "waitMaxMs" double precision, hold bigint[], "holdMaxMs" double precision)
    WHERE r.namespace IS NOT NULL
  ), placed AS (
    SELECT g.*, CASE WHEN g.known OR row_number() OVER (PARTITION BY g.known ORDER BY g.acquired DESC) <= g.free
      THEN g.namespace ELSE '(other)' END AS place
    FROM given g
  ), summed AS (
    SELECT p.place, sum(p.acquired) AS acquired, sum(p.timeouts) AS timeouts, sum(p.busy) AS busy,
      max(p.wait_max) AS wait_max, max(p.hold_max) AS hold_max,
      array_agg(to_jsonb(p.wait)) AS waits, array_agg(to_jsonb(p.hold)) AS holds
    FROM placed p GROUP BY p.place
  ), written AS (
    INSERT INTO lock_minute AS m (bucket, minute, namespace, acquired, timeouts, busy, wait, wait_max_ms,
                                  hold, hold_max_ms)
    SELECT 0, this_minute, s.place, coalesce(s.acquired, 0), coalesce(s.timeouts, 0), coalesce(s.busy, 0),
      add_buckets(s.waits), coalesce(s.wait_max, 0), add_buckets(s.holds), coalesce(s.hold_max, 0)
    FROM summed s
    ORDER BY s.place
    ON CONFLICT (bucket, minute, namespace) DO UPDATE SET
      acquired = m.acquired + excluded.acquired,
      timeouts = m.timeouts + excluded.timeouts,
      busy = m.busy + excluded.busy,
      wait = add_buckets(ARRAY[to_jsonb(m.wait), to_jsonb(excluded.wait)]),
      wait_max_ms = greatest(m.wait_max_ms, excluded.wait_max_ms),
      hold = add_buckets(ARRAY[to_jsonb(m.hold), to_jsonb(excluded.hold)]),
      hold_max_ms = greatest(m.hold_max_ms, excluded.hold_max_ms)
    RETURNING xmax = 0 AS opened
  )
  SELECT count(*) FILTER (WHERE w.opened) INTO opened FROM written w;
  IF opened > 0 THEN
    DELETE FROM lock_minute m USING (
      SELECT x.bucket, x.minute, x.namespace FROM lock_minute x
      WHERE x.bucket = 0 AND x.minute < moment - interval '1 day'
      ORDER BY x.minute LIMIT 1000
      FOR UPDATE SKIP LOCKED
    ) old
    WHERE m.bucket = old.bucket AND m.minute = old.minute AND m.namespace = old.namespace;
  END IF;
  RETURN added;
END
$$;
