-- Makes this server a part of a cluster: its own name, and who has which bucket, 4096 names in the order
-- of the buckets. Once it is one, the same cluster and name change nothing, and others are refused.
-- Answers whether it did something.
CREATE OR REPLACE FUNCTION :"schema".init_shards(cluster uuid, shard text, owners text[]) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
BEGIN
  IF cardinality(owners) <> 4096 OR array_position(owners, NULL) IS NOT NULL THEN
    RAISE EXCEPTION 'every bucket needs an owner' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO shard_self (cluster, shard) VALUES (cluster, shard) ON CONFLICT DO NOTHING;
  IF NOT FOUND THEN
    PERFORM FROM shard_self s WHERE s.cluster = cluster AND s.shard = shard;
    IF NOT FOUND THEN
      RAISE EXCEPTION 'this server is a part of another cluster'
        USING ERRCODE = 'object_not_in_prerequisite_state';
    END IF;
    RETURN false;
  END IF;
  INSERT INTO shard_map (bucket, shard, here, version)
  SELECT o.at - 1, o.owner, o.owner = shard, 1
  FROM unnest(owners) WITH ORDINALITY AS o(owner, at);
  RETURN true;
END
$$;
