-- The next fencing token of a bucket: more than any before it, and at least the milliseconds since
-- 1970, so that it does not go back either where the counter did, on a standby that lagged or in a
-- restored backup. Locks the counter until the transaction ends; callers lock their lease first.
CREATE OR REPLACE FUNCTION :"schema".next_token(bucket smallint) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  since CONSTANT bigint := floor(extract(epoch FROM clock_timestamp()) * 1000);
  given bigint;
BEGIN
  INSERT INTO lease_counter AS c (bucket, token) VALUES (bucket, since)
  ON CONFLICT ON CONSTRAINT lease_counter_pkey
    DO UPDATE SET token = greatest(c.token + 1, excluded.token)
  RETURNING c.token INTO given;
  RETURN given;
END;
$$;
