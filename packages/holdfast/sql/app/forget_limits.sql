-- Looks at the next rows of rate limits after a place, in the order of the primary key, and deletes those that are over.
-- Passes by rows that somebody else has locked, and buckets that another server has.
--
-- answer [deleted, bucket, key], the last two being where to go on; null at the end
CREATE OR REPLACE FUNCTION :"schema".forget_limits(after_bucket smallint, after_key uuid, most integer) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  seen CONSTANT integer := greatest(1, least(most, 10000));
  last_bucket smallint;
  last_key uuid;
  deleted integer;
BEGIN
  SELECT x.bucket, x.key INTO last_bucket, last_key
  FROM rate_limit x
  WHERE (x.bucket, x.key) > (after_bucket, after_key)
  ORDER BY x.bucket, x.key
  OFFSET seen - 1 LIMIT 1;
  WITH over AS MATERIALIZED (
    SELECT x.bucket, x.key FROM rate_limit x
    WHERE (x.bucket, x.key) > (after_bucket, after_key)
      AND (last_key IS NULL OR (x.bucket, x.key) <= (last_bucket, last_key))
      AND x.until < clock_timestamp() AND NOT away(x.bucket)
    FOR UPDATE SKIP LOCKED
  )
  DELETE FROM rate_limit r USING over o WHERE r.bucket = o.bucket AND r.key = o.key;
  GET DIAGNOSTICS deleted = ROW_COUNT;
  RETURN json_build_array(deleted, last_bucket, last_key);
END
$$;
