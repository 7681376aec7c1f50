-- Takes buckets that no primary has, because the one that had them came back from a backup of before it got them. They
-- begin empty. Versions are the highest that any primary knows. HF003 if one is here, or in a move.
CREATE OR REPLACE FUNCTION :"schema".adopt_buckets(buckets integer[], versions bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  wanted CONSTANT smallint[] := buckets::smallint[];
BEGIN
  LOCK TABLE shard_move IN SHARE ROW EXCLUSIVE MODE;
  IF unconfirmed() OR cardinality(wanted) IS DISTINCT FROM cardinality(versions) OR EXISTS (
    SELECT FROM shard_move j WHERE j.ended_at IS NULL AND j.buckets && wanted
  ) OR EXISTS (SELECT FROM shard_map m WHERE m.bucket = ANY (wanted) AND m.here) THEN
    RAISE EXCEPTION 'a bucket is here, or in a move' USING ERRCODE = 'HF003';
  END IF;
  UPDATE shard_map m SET here = true, shard = (SELECT s.shard FROM shard_self s),
    version = greatest(m.version, v.version) + 1
  FROM unnest(wanted, versions) AS v(bucket, version)
  WHERE m.bucket = v.bucket;
END;
$$;
