-- What this server knows about where these buckets are, all of them if null: a JSON object with cluster,
-- shard (this one), members (the names of all primaries, null if it was not told), confirmed (whether it was compared
-- with the others since it was started) and map, a list of [bucket, shard, here, leaving, version]. Null if it was
-- never set up.
CREATE OR REPLACE FUNCTION :"schema".read_shards(buckets integer[]) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
  SELECT json_build_object('cluster', s.cluster, 'shard', s.shard, 'members', s.members, 'confirmed', NOT unconfirmed(), 'map', (
    SELECT json_agg(json_build_array(m.bucket, m.shard, m.here, m.leaving, m.version) ORDER BY m.bucket)
    FROM shard_map m WHERE buckets IS NULL OR m.bucket = ANY (buckets::smallint[])
  ))::text
  FROM shard_self s
$$;
