-- Says why this server does not serve all of these buckets: HF008 if nobody knows before the other primaries were
-- asked, HF001 if one is elsewhere, HF002 if all are here and one is about to leave.
CREATE OR REPLACE FUNCTION :"schema".refuse_buckets(buckets integer[]) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
BEGIN
  IF unconfirmed() THEN
    RAISE EXCEPTION 'this server has to be compared with the other primaries' USING ERRCODE = 'HF008';
  END IF;
  PERFORM FROM unnest(buckets) AS w(bucket)
  LEFT JOIN shard_map m ON m.bucket = w.bucket AND m.here
  WHERE m.bucket IS NULL;
  IF FOUND THEN RAISE EXCEPTION 'a bucket is on another server' USING ERRCODE = 'HF001'; END IF;
  RAISE EXCEPTION 'a bucket is being moved to another server' USING ERRCODE = 'HF002';
END
$$;
