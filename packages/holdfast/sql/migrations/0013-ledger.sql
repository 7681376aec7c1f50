-- Grants that are restricted to features, which are few: every operation on an account with grants asks for them.
--
-- `holdfast migrate` has built the index beforehand, online (sql/online/0013-ledger.sql). Where this file is run without
-- that, it waits at most three seconds for the table, and writers wait while the index is built.
DO $$
DECLARE
  own text := current_setting('lock_timeout');
  own_ms CONSTANT integer := (SELECT s.setting::integer FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout');
BEGIN
  IF own_ms = 0 OR own_ms > 3000 THEN PERFORM set_config('lock_timeout', '3s', true); END IF;
  IF NOT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = to_regclass('credit_grant_restricted') AND i.indisvalid) THEN
    DROP INDEX IF EXISTS :"schema".credit_grant_restricted;
    CREATE INDEX credit_grant_restricted ON :"schema".credit_grant (bucket, account)
      WHERE state = 1 AND NOT empty AND jsonb_exists(note, 'onlyFor');
  END IF;
  PERFORM set_config('lock_timeout', own, true);
END;
$$;
