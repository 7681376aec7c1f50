-- Gives a lease back: it is free at once, without the delay after a loss. Answers `released`, or why
-- there was nothing to give back. Does not wait for guarded writes; whoever acquires it next does.
-- With session_lock the advisory lock is given back as well, and `stacked` or `unlocked` is the answer
-- if it had been taken twice or not at all.
CREATE OR REPLACE FUNCTION :"schema".release_lease(
  scope text, name text, owner uuid, token bigint, session_lock bigint
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  bucket CONSTANT smallint := bucket_of(scope);
  found_lease lease%ROWTYPE;
  state text;
BEGIN
  SELECT * INTO found_lease FROM lease l
  WHERE l.bucket = bucket AND l.scope = scope AND l.name = name
  FOR NO KEY UPDATE;
  state := lease_state(found_lease, token);
  IF state IN ('held', 'expired') AND found_lease.owner = owner THEN
    UPDATE lease l SET owner = NULL, expires_at = clock_timestamp()
    WHERE l.bucket = bucket AND l.scope = scope AND l.name = name;
    state := CASE state WHEN 'held' THEN 'released' ELSE state END;
  ELSIF state = 'held' THEN
    state := 'taken';
  END IF;
  IF session_lock IS NOT NULL THEN
    -- Asked first: to unlock what is not held is a warning in the server's log.
    IF NOT holds_session_lock(session_lock) OR NOT pg_advisory_unlock(session_lock) THEN
      state := 'unlocked';
    ELSIF holds_session_lock(session_lock) THEN
      state := 'stacked';
    END IF;
  END IF;
  RETURN state;
END
$$;
