-- Forgets accounts of a range of buckets that are as good as new, and of which no movement is kept, with everything that
-- belongs to them; returns how many. These are calendar windows that ended before a moment, and what nobody has used
-- since then of rates that are full again and of rolling windows that are empty again.
CREATE OR REPLACE FUNCTION :"schema".forget_windows(before timestamptz, first integer, last integer)
RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  -- What another server has, or is about to.
  gone CONSTANT smallint[] := ARRAY(
    SELECT m.bucket FROM shard_map m
    WHERE m.bucket BETWEEN first AND last AND (m.leaving OR NOT m.here)
  );
  forgotten bigint;
BEGIN
  WITH closed AS MATERIALIZED (
    SELECT b.bucket, b.account
    FROM account a
    JOIN balance b ON b.bucket = a.bucket AND b.account = a.id
    LEFT JOIN book k ON k.name = a.book AND a.window_end = 'infinity'
    WHERE a.bucket BETWEEN first AND last AND (a.window_end < before OR NOT b.pinned AND CASE
        WHEN k.declaration ? 'rolling' THEN true
        -- At most a thousand times its limit may come at once, so that it is full after as many of its times.
        WHEN k.declaration ? 'rate' THEN b.credited >= b.debited
          AND b.refilled_at + 1000 * (k.declaration ->> 'rate')::interval < before
      END)
      AND b.held = 0 AND b.moved_at < before AND b.bucket <> ALL (gone)
      AND NOT EXISTS (SELECT FROM movement m WHERE m.bucket = b.bucket AND m.account = b.account)
    -- Whoever works on one of them keeps it.
    FOR UPDATE OF b SKIP LOCKED
  ), holds AS (
    DELETE FROM hold x USING closed c WHERE x.bucket = c.bucket AND x.account = c.account
  ), allocations AS (
    DELETE FROM allocation x USING closed c WHERE x.bucket = c.bucket AND x.account = c.account
  ), grants AS (
    DELETE FROM credit_grant x USING closed c WHERE x.bucket = c.bucket AND x.account = c.account
  ), checkpoints AS (
    DELETE FROM checkpoint x USING closed c WHERE x.bucket = c.bucket AND x.account = c.account
  ), places AS (
    DELETE FROM followed x USING closed c WHERE x.bucket = c.bucket AND x.account = c.account
  ), balances AS (
    DELETE FROM balance x USING closed c WHERE x.bucket = c.bucket AND x.account = c.account
  ), gone AS (
    DELETE FROM account x USING closed c WHERE x.bucket = c.bucket AND x.id = c.account
    RETURNING 1
  )
  SELECT count(*) INTO forgotten FROM gone;
  RETURN forgotten;
END;
$$;
