-- Remembers that the work of a key was done and what it gave, in the transaction that did it. Where the
-- snapshot is older than somebody else's work (REPEATABLE READ), it is found out here, and nothing of
-- this transaction may stay.
CREATE OR REPLACE FUNCTION :"schema".store_once(
  key text, scope text, fingerprint text, result text, keep_ms bigint
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  until CONSTANT timestamptz := moment + keep_ms * interval '1 millisecond';
BEGIN
  INSERT INTO once AS x (bucket, key, scope, fingerprint, result, done_at, expires_at)
  VALUES (bucket_of(scope), key, scope, fingerprint, result, moment, until)
  ON CONFLICT ON CONSTRAINT once_pkey DO UPDATE
  SET fingerprint = fingerprint, result = result, done_at = moment, expires_at = until
  WHERE x.expires_at <= moment;
  IF NOT FOUND THEN
    RAISE EXCEPTION 'the work of this key was done by another transaction'
      USING ERRCODE = 'serialization_failure';
  END IF;
  RETURN 'stored';
END
$$;
