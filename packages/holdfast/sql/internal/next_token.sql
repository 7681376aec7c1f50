-- The next fencing token of a bucket: more than any before it, and at least the microseconds since 1970 by the
-- server's clock. No server hands out one in a microsecond, so tokens never run ahead of the clock, and where the
-- counter went back, on a standby that lagged or in a restored backup, the clock is past all of them.
-- Locks the counter until the transaction ends; callers lock their lease first.
CREATE OR REPLACE FUNCTION :"schema".next_token(bucket smallint) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  since CONSTANT bigint := micros(clock_timestamp());
  given bigint;
BEGIN
  INSERT INTO lease_counter AS c (bucket, token) VALUES (bucket, since)
  ON CONFLICT ON CONSTRAINT lease_counter_pkey
    DO UPDATE SET token = greatest(c.token + 1, excluded.token)
  RETURNING c.token INTO given;
  RETURN given;
END;
$$;
