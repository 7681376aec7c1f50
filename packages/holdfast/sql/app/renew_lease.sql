-- Moves the expiry of a lease that is still held: its time to live, from now. Answers `held`, or why
-- not. An expired lease stays expired, also if nobody else wanted it. With session_lock, only the
-- session that holds the advisory lock may renew.
CREATE OR REPLACE FUNCTION :"schema".renew_lease(
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
  IF session_lock IS NOT NULL AND NOT holds_session_lock(session_lock) THEN
    RETURN 'unlocked';
  END IF;
  SELECT * INTO found_lease FROM lease l
  WHERE l.bucket = bucket AND l.scope = scope AND l.name = name
  FOR NO KEY UPDATE;
  -- Judged after the wait, by the clock of now.
  state := lease_state(found_lease, token);
  IF state = 'held' AND found_lease.owner IS DISTINCT FROM owner THEN
    state := 'taken';
  END IF;
  IF state = 'held' THEN
    UPDATE lease l SET expires_at = clock_timestamp() + l.ttl
    WHERE l.bucket = bucket AND l.scope = scope AND l.name = name;
  END IF;
  RETURN state;
END
$$;
