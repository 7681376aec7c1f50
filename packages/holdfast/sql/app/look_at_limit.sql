-- What is stored about a key of a rate limit, without a lock.
--
-- answer of a calendar window [when it ends, what is used in it], which may be a later one if somebody with a later moment
-- was faster; of a rate (unit and zone are null) [this moment, when nothing is used any more, in how many microseconds a unit
-- comes back], the last two 0 and 1 if there is no row
CREATE OR REPLACE FUNCTION :"schema".look_at_limit(bucket smallint, key uuid, unit text, zone text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  ends CONSTANT timestamptz := window_end(unit, zone, moment);
  found rate_limit%ROWTYPE;
BEGIN
  SELECT * INTO found FROM rate_limit r WHERE r.bucket = bucket AND r.key = key;
  IF unit IS NULL THEN
    RETURN json_build_array(micros(moment), coalesce(found.used, 0), coalesce(found.unit, 1));
  ELSIF found.until > moment THEN
    RETURN json_build_array(
      micros(CASE WHEN found.until <= ends + 1.1 * ('1 ' || unit)::interval THEN found.until ELSE ends END), found.used);
  END IF;
  RETURN json_build_array(micros(ends), 0);
END
$$;
