-- What is known about a lease, as JSON, or null. Not its owner: whoever knows that can release it.
CREATE OR REPLACE FUNCTION :"schema".read_lease(scope text, name text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
BEGIN
  RETURN (
    SELECT json_build_object(
      'state', CASE
        WHEN l.owner IS NULL OR l.expires_at + l.delay <= moment THEN 'free'
        WHEN l.expires_at <= moment THEN 'delayed'
        ELSE 'held'
      END,
      'token', l.token::text,
      'note', l.note,
      'acquired', micros(l.acquired_at)::text,
      'expires', micros(l.expires_at)::text
    )
    FROM lease l
    WHERE l.bucket = bucket_of(scope) AND l.scope = scope AND l.name = name
  );
END
$$;
