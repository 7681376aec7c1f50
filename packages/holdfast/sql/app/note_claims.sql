-- Writes down that rows were claimed just now, for limits of claims per time: {key: how many}. To be called in the
-- transaction that claimed them, under the locks of the keys. Forgets a few keys whose time is past.
CREATE OR REPLACE FUNCTION :"schema".note_claims(limiter text, claimed jsonb, per_ms bigint) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  past CONSTANT timestamptz := moment - per_ms * interval '1 millisecond';
BEGIN
  INSERT INTO claim_rate AS r (bucket, limiter, key, starts, until)
  SELECT bucket_of(c.key), limiter, c.key, array_fill(moment, ARRAY[c.value::integer]),
         moment + per_ms * interval '1 millisecond'
  FROM jsonb_each_text(claimed) AS c(key, value)
  ORDER BY 1, 3
  ON CONFLICT ON CONSTRAINT claim_rate_pkey DO UPDATE
  SET starts = ARRAY(SELECT s.at FROM unnest(r.starts) AS s(at) WHERE s.at > past) || excluded.starts,
      until = excluded.until;
  -- Last, and past whoever is at it: nobody here waits for anything afterwards, so there can be no deadlock.
  DELETE FROM claim_rate r WHERE (r.bucket, r.limiter, r.key) IN (
    SELECT o.bucket, o.limiter, o.key FROM claim_rate o WHERE o.until <= moment
    ORDER BY o.until LIMIT 10 FOR UPDATE SKIP LOCKED);
  RETURN 'noted';
END
$$;
