-- Books what fell due on accounts that nobody touches: holds that expired, grants that begin or end.
-- Any number of processes may call it at once: an account that somebody works on is left to them,
-- because they book it themselves. Returns how many fell, and whether more is due.
CREATE OR REPLACE FUNCTION :"schema".sweep(most integer) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  batch CONSTANT integer := greatest(1, least(coalesce(most, 1), 10000));
  fallen integer := 0;
  due record;
BEGIN
  FOR due IN
    SELECT b.bucket, b.account
    FROM (
      SELECT d.bucket, d.account
      FROM (
        (SELECT h.bucket, h.account FROM hold h
         WHERE h.state = 0 AND h.expires_at <= moment AND NOT away(h.bucket)
         ORDER BY h.expires_at LIMIT batch)
        UNION ALL
        (SELECT g.bucket, g.account FROM credit_grant g
         WHERE g.due_at < 'infinity' AND g.due_at <= moment AND NOT away(g.bucket)
         ORDER BY g.due_at LIMIT batch)
      ) d
      GROUP BY d.bucket, d.account
      ORDER BY d.bucket, d.account
    ) d
    CROSS JOIN LATERAL (
      SELECT x.bucket, x.account FROM balance x
      WHERE x.bucket = d.bucket AND x.account = d.account
      FOR NO KEY UPDATE SKIP LOCKED
    ) b
  LOOP
    -- A statement of its own: what ended while the row was being locked is seen as ended.
    fallen := fallen + fall_due(due.bucket, due.account);
  END LOOP;
  RETURN concat_ws(',', fallen, (EXISTS (
    SELECT FROM hold h WHERE h.state = 0 AND h.expires_at <= moment AND NOT away(h.bucket)
  ) OR EXISTS (
    SELECT FROM credit_grant g WHERE g.due_at < 'infinity' AND g.due_at <= moment AND NOT away(g.bucket)
  ))::integer);
END
$$;
