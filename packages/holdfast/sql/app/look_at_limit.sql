-- What is stored about a key of a rate limit, without a lock.
--
-- answer [this moment, end of its calendar window or null, used, until]; used and until are those of the row, 0 if there
-- is none
CREATE OR REPLACE FUNCTION :"schema".look_at_limit(bucket smallint, key uuid, unit text, zone text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
BEGIN
  RETURN (
    SELECT json_build_array(micros(moment), micros(window_end(unit, zone, moment)), coalesce(max(r.used), 0),
      coalesce(micros(max(r.until)), 0))
    FROM rate_limit r
    WHERE r.bucket = bucket AND r.key = key
  );
END
$$;
