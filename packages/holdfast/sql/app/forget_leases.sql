-- Deletes leases that nobody has held for so long, at most so many. Their tokens stay used: the counter
-- of their bucket is not touched. Rows that somebody is about to take are passed by.
CREATE OR REPLACE FUNCTION :"schema".forget_leases(idle_ms bigint, most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
DECLARE
  forgotten integer;
BEGIN
  WITH idle AS MATERIALIZED (
    SELECT l.bucket, l.scope, l.name FROM lease l
    WHERE greatest(l.expires_at + l.delay, l.acquired_at)
      < clock_timestamp() - greatest(idle_ms, 0) * interval '1 millisecond'
      AND NOT away(l.bucket)
    LIMIT greatest(1, least(most, 10000))
    FOR UPDATE SKIP LOCKED
  )
  DELETE FROM lease l USING idle i
  WHERE l.bucket = i.bucket AND l.scope = i.scope AND l.name = i.name;
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END
$$;
