-- Takes a lease that is free, expired, or already this owner's (an answer that was lost on its way).
-- Answers `token,remaining milliseconds`; without a token it was refused, and the rest is how long it
-- is held for certain. Never waits: a row that somebody renews, takes or guards is not free.
--
-- With session_lock the lease belongs to whoever holds that advisory lock in this session. The lock is
-- taken if it is free, never twice. Its holder takes over at once, expired or not, from who had that lock
-- before: they have lost it. A holder without a session is waited for.
CREATE OR REPLACE FUNCTION :"schema".acquire_lease(
  scope text, name text, owner uuid, ttl_ms bigint, delay_ms bigint, note text, session_lock bigint
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
  ttl CONSTANT interval := ttl_ms * interval '1 millisecond';
  delay CONSTANT interval := delay_ms * interval '1 millisecond';
  moment timestamptz := clock_timestamp();
  found_lease lease%ROWTYPE;
  in_session CONSTANT boolean := session_lock IS NOT NULL;
  given bigint;
BEGIN
  IF ttl_ms IS NULL OR ttl_ms < 1 OR delay_ms IS NULL OR delay_ms < 0 OR owner IS NULL THEN
    RAISE EXCEPTION 'a lease needs an owner and a time to live'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF in_session AND NOT holds_session_lock(session_lock)
    AND NOT pg_try_advisory_lock(session_lock) THEN
    RETURN ',0';
  END IF;
  -- A look without a lock first, so that those who wait do not get in the way of the holder.
  SELECT * INTO found_lease FROM lease l
  WHERE l.bucket = bucket AND l.scope = scope AND l.name = name;
  IF NOT FOUND THEN
    INSERT INTO lease (bucket, scope, name, token, ttl, delay, acquired_at, expires_at)
    VALUES (bucket, scope, name, 0, ttl, delay, '-infinity', '-infinity')
    ON CONFLICT DO NOTHING;
  ELSIF found_lease.owner <> owner AND NOT (in_session AND found_lease.by_session)
    AND found_lease.expires_at + found_lease.delay > moment THEN
    RETURN concat(',', remaining_ms(found_lease.expires_at + found_lease.delay, moment));
  END IF;
  SELECT * INTO found_lease FROM lease l
  WHERE l.bucket = bucket AND l.scope = scope AND l.name = name
  FOR UPDATE SKIP LOCKED;
  IF NOT FOUND THEN
    RETURN ',0';
  END IF;
  moment := clock_timestamp();
  IF found_lease.owner = owner AND found_lease.expires_at > moment THEN
    given := found_lease.token;
  ELSIF found_lease.owner IS NOT NULL AND NOT (in_session AND found_lease.by_session)
    AND found_lease.expires_at + found_lease.delay > moment THEN
    RETURN concat(',', remaining_ms(found_lease.expires_at + found_lease.delay, moment));
  ELSE
    given := next_token(bucket);
  END IF;
  UPDATE lease l
  SET owner = owner, token = given, ttl = ttl, delay = delay, note = note, by_session = in_session,
    acquired_at = CASE WHEN l.token = given THEN l.acquired_at ELSE moment END,
    expires_at = moment + ttl
  WHERE l.bucket = bucket AND l.scope = scope AND l.name = name;
  RETURN concat(given, ',', ttl_ms);
END
$$;
