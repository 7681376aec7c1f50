-- Which of these keys of rate limits are locked by a transaction, by their numbers: [1, 5]. Also those that have no row,
-- because somebody may be about to be the first. Locks the others for no longer than this takes.
CREATE OR REPLACE FUNCTION :"schema".locked_limits(buckets smallint[], keys uuid[]) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_column
BEGIN
  RETURN (
    WITH free AS MATERIALIZED (
      SELECT r.bucket, r.key
      FROM rate_limit r
      JOIN unnest(buckets, keys) AS u(bucket, key) ON r.bucket = u.bucket AND r.key = u.key
      FOR NO KEY UPDATE OF r SKIP LOCKED
    )
    SELECT coalesce(json_agg(u.ord), '[]')
    FROM unnest(buckets, keys) WITH ORDINALITY AS u(bucket, key, ord)
    WHERE NOT EXISTS (SELECT FROM free f WHERE f.bucket = u.bucket AND f.key = u.key)
  );
END
$$;
