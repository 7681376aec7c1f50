-- Makes this server a part of a cluster: its own name, and who has which bucket, 4096 names in the order
-- of the buckets. Once it is one, the same cluster and name change nothing but the members, the names of all primaries,
-- and others are refused. HF003 if it has rows in a bucket that is to be another's: nobody would find them.
-- Answers whether it got buckets.
CREATE OR REPLACE FUNCTION :"schema".init_shards(cluster uuid, shard text, owners text[], members text[])
RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
BEGIN
  IF cardinality(owners) <> 4096 OR array_position(owners, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'every bucket needs an owner' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO shard_self (cluster, shard, members) VALUES (cluster, shard, members) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    UPDATE shard_self s SET members = members WHERE s.cluster = cluster AND s.shard = shard;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'this server is a part of another cluster'
        USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN false;
  END IF;
  IF EXISTS (
    SELECT FROM json_array_elements_text(occupied_buckets()::json) AS o(bucket)
    WHERE owners[o.bucket::integer + 1] <> shard
  ) THEN
    RAISE EXCEPTION 'it has rows in buckets that are to be another primary''s' USING ERRCODE = 'HF003';
  END IF;
  INSERT INTO shard_map (bucket, shard, here, version)
  SELECT o.at - 1, o.owner, o.owner = shard, 1
  FROM unnest(owners) WITH ORDINALITY AS o(owner, at);
  -- Nothing has been moved yet that it could have missed.
  PERFORM confirm_shards('[]', true);
  RETURN true;
END
$$;
