-- How many rows this server has in the buckets of a move, by table and bucket, as JSON.
CREATE OR REPLACE FUNCTION :"schema".count_move(move uuid) RETURNS text
LANGUAGE sql SET search_path = :"schema", pg_temp AS $$
  SELECT count_buckets(move_tables(ARRAY(SELECT jsonb_array_elements_text(m.detail -> 'tables'))), m.buckets)::text
  FROM shard_move m WHERE m.id = move
$$;
