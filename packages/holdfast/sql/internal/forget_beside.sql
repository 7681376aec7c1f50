-- Deletes what is over of the next few rows of a bucket. Called for every new row: keys are hashes, so that new rows come
-- everywhere, and what is over stays a bounded part of the table as long as there are new ones. Passes by rows that
-- somebody else has locked. Ten minutes are waited, because a key whose window has just ended is likely to be used again.
CREATE OR REPLACE FUNCTION :"schema".forget_beside(bucket smallint, key uuid, look integer) RETURNS void
LANGUAGE plpgsql VOLATILE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
BEGIN
  DELETE FROM rate_limit r
  WHERE r.bucket = bucket AND r.key = ANY (ARRAY(
    SELECT x.key FROM rate_limit x
    WHERE x.bucket = bucket AND x.until < clock_timestamp() - interval '10 minutes'
      AND x.key = ANY (ARRAY(
        SELECT n.key FROM rate_limit n WHERE n.bucket = bucket AND n.key > key ORDER BY n.key LIMIT look
      ))
    FOR UPDATE SKIP LOCKED
  ));
END
$$;
