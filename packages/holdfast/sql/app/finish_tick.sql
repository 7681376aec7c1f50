-- Ends an attempt that is still the caller's: done, failed, or waiting if "retry_ms" says that there will
-- be another one; lost if the tick is somebody else's by now. Asked again with the same token, it
-- answers the same. Of the ticks that have ended, the latest "keep" are kept.
CREATE OR REPLACE FUNCTION :"schema".finish_tick(
  name text, at timestamptz, manual boolean, token uuid, error text, retry_ms bigint, keep integer
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  bucket CONSTANT smallint := bucket_of(name);
  moment CONSTANT timestamptz := clock_timestamp();
  state CONSTANT smallint := CASE
    WHEN error IS NULL THEN 2 WHEN retry_ms IS NULL THEN 3 ELSE 1 END;
BEGIN
  UPDATE tick x
  SET state = state, finished_at = moment, error = error,
    lease_until = CASE WHEN state = 1 THEN moment + retry_ms * interval '1 millisecond' END
  WHERE x.bucket = bucket AND x.schedule = name AND x.at = at AND x.manual = manual
    AND x.token = token AND (x.state = 0 OR x.state = state);
  IF NOT FOUND THEN RETURN 'lost'; END IF;
  -- In the order of the primary key; an open tick stays however old it is.
  DELETE FROM tick x
  WHERE x.bucket = bucket AND x.schedule = name AND x.state > 1 AND x.at < (
    SELECT k.at FROM tick k WHERE k.bucket = bucket AND k.schedule = name
    ORDER BY k.at DESC OFFSET greatest(keep, 1) - 1 LIMIT 1
  );
  RETURN CASE state WHEN 2 THEN 'done' WHEN 3 THEN 'failed' ELSE 'waiting' END;
END
$$;
