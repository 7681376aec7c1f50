-- Forgets grants of a range of buckets of which nothing is left and to which nothing can come back, with the notes of what
-- they paid; returns how many. Nothing can come back where no movement that drew from it is kept, and so no operation id
-- either, no hold is there that it pays, and it pays no debt.
CREATE OR REPLACE FUNCTION :"schema".forget_grants(first integer, last integer) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET jit = off AS $$
DECLARE
  -- What another server has, or is about to.
  gone CONSTANT smallint[] := ARRAY(
    SELECT m.bucket FROM shard_map m
    WHERE m.bucket BETWEEN first AND last AND (m.leaving OR NOT m.here)
  );
  forgotten bigint;
BEGIN
  WITH ours AS MATERIALIZED (
    -- Whoever works on one of them keeps it.
    SELECT b.bucket, b.account
    FROM balance b
    WHERE b.bucket BETWEEN first AND last AND b.granted AND b.bucket <> ALL (gone)
    FOR NO KEY UPDATE SKIP LOCKED
  ), needed AS MATERIALIZED (
    SELECT DISTINCT x.bucket, x.account, x.grant_id
    FROM ours o
    JOIN allocation x ON x.bucket = o.bucket AND x.account = o.account
    LEFT JOIN checkpoint c ON c.bucket = x.bucket AND c.account = x.account
    LEFT JOIN hold h ON h.bucket = x.bucket AND h.account = x.account AND h.made_seq = x.seq
    WHERE x.grant_id IS NOT NULL
      AND (x.seq > coalesce(c.seq, 0) OR h.id IS NOT NULL OR x.arrears AND x.returned < x.amount)
  ), ended AS MATERIALIZED (
    SELECT g.bucket, g.account, g.id
    FROM ours o
    JOIN credit_grant g ON g.bucket = o.bucket AND g.account = o.account
    JOIN checkpoint c ON c.bucket = g.bucket AND c.account = g.account
    LEFT JOIN needed n ON n.bucket = g.bucket AND n.account = g.account AND n.grant_id = g.id
    WHERE n.grant_id IS NULL AND g.ordinal <= c.seq AND (g.state > 1 OR g.state = 1 AND g.empty)
  ), notes AS (
    DELETE FROM allocation x USING ended e
    WHERE x.bucket = e.bucket AND x.account = e.account AND x.grant_id = e.id
  ), grants AS (
    DELETE FROM credit_grant x USING ended e
    WHERE x.bucket = e.bucket AND x.account = e.account AND x.id = e.id
    RETURNING 1
  )
  SELECT count(*) INTO forgotten FROM grants;
  RETURN forgotten;
END;
$$;
