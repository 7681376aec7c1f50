-- Forgets keys whose time is up, the oldest first, and says how many. Any number of processes may call
-- it at once: each takes rows that the others have not.
CREATE OR REPLACE FUNCTION :"schema".forget_once(most integer) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
DECLARE
  gone integer;
BEGIN
  WITH due AS MATERIALIZED (
    SELECT x.bucket, x.key, x.scope
    FROM once x
    WHERE x.expires_at <= statement_timestamp() AND NOT away(x.bucket)
    ORDER BY x.expires_at
    LIMIT greatest(1, least(most, 10000))
    FOR UPDATE SKIP LOCKED
  )
  DELETE FROM once x USING due d
  WHERE x.bucket = d.bucket AND x.key = d.key AND x.scope = d.scope;
  GET DIAGNOSTICS gone = ROW_COUNT;
  RETURN gone;
END
$$;
