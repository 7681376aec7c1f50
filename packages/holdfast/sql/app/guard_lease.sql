-- The fence. Answers `held` if this token is the lease's, and keeps it so until the transaction ends:
-- whoever takes over needs FOR UPDATE, which waits for KEY SHARE. Anything else is why not.
-- At REPEATABLE READ a take-over after the snapshot is a serialization failure, not a stale answer.
CREATE OR REPLACE FUNCTION :"schema".guard_lease(scope text, name text, token bigint) RETURNS text
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
BEGIN
  PERFORM FROM lease l
  WHERE l.bucket = bucket AND l.scope = scope AND l.name = name
  FOR KEY SHARE;
  -- Read once more, now that it cannot be taken: what KEY SHARE itself returns may be the version from
  -- before a renewal or a release, because it does not conflict with them.
  SELECT * INTO found_lease FROM lease l
  WHERE l.bucket = bucket AND l.scope = scope AND l.name = name;
  RETURN lease_state(found_lease, token);
END
$$;
