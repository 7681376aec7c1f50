-- Extends the lease of a tick that is still the caller's: renewed, or lost. A lease that has run out and
-- that nobody else took up is renewed like any other.
CREATE OR REPLACE FUNCTION :"schema".renew_tick(
  name text, at timestamptz, manual boolean, token uuid, lease_ms bigint
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
BEGIN
  UPDATE tick x SET lease_until = clock_timestamp() + lease_ms * interval '1 millisecond'
  WHERE x.bucket = bucket_of(name) AND x.schedule = name AND x.at = at AND x.manual = manual
    AND x.token = token AND x.state = 0;
  RETURN CASE WHEN FOUND THEN 'renewed' ELSE 'lost' END;
END
$$;
