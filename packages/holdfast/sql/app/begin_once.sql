-- Asks whether the work of a key has been done. To be called in the transaction that does it otherwise:
-- the key is locked until that ends, so that duplicates wait for the answer, or hear "busy" if they do
-- not want to.
--
-- answer  first; busy; mismatch; done, with the stored JSON behind a colon, or nothing without one
CREATE OR REPLACE FUNCTION :"schema".begin_once(
  key text, scope text, fingerprint text, wait boolean
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  o once%ROWTYPE;
BEGIN
  IF wait THEN
    PERFORM pg_advisory_xact_lock(once_lock(key, scope));
  ELSIF NOT pg_try_advisory_xact_lock(once_lock(key, scope)) THEN
    RETURN 'busy';
  END IF;
  -- A statement of its own, with a snapshot that is younger than the lock.
  SELECT x.* INTO o
  FROM once x
  WHERE x.bucket = bucket_of(scope) AND x.key = key AND x.scope = scope
    AND x.expires_at > clock_timestamp();
  IF NOT FOUND THEN RETURN 'first'; END IF;
  IF o.fingerprint <> fingerprint THEN RETURN 'mismatch'; END IF;
  PERFORM wait_for_standby();
  RETURN concat('done', ':' || o.result);
END
$$;
