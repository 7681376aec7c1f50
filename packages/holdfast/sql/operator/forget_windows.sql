-- Forgets calendar windows of a range of buckets that ended before a moment and of which no movement
-- is kept, with everything that belongs to them; returns how many.
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
    WHERE a.bucket BETWEEN first AND last AND a.window_end < before
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
