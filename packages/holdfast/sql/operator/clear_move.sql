-- Deletes rows of buckets that are not here, at most so many; answers how many that were. At the source what
-- was handed over, at the target what came before a move was undone or received anew. Triggers and foreign
-- keys of the tables are not asked: to the cluster nothing is deleted.
CREATE OR REPLACE FUNCTION :"schema".clear_move(move uuid, most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,clearing,undone}');
  role CONSTANT text := current_setting('session_replication_role');
  deleted integer := 0;
  leaf regclass;
  count integer;
BEGIN
  IF EXISTS (SELECT FROM shard_map m WHERE m.bucket = ANY (journal.buckets) AND m.here) OR subscribed(move) THEN
    RAISE EXCEPTION 'rows that are here are not deleted' USING ERRCODE = 'HF004';
  END IF;
  PERFORM set_config('session_replication_role', 'replica', true);
  FOR leaf IN
    SELECT coalesce(p.relid, t)
    FROM unnest(move_tables(ARRAY(SELECT jsonb_array_elements_text(journal.detail -> 'tables')))) AS t
    -- Nothing for a table that has no partitions.
    LEFT JOIN LATERAL pg_partition_tree(t) AS p ON true
    WHERE p.isleaf IS NOT false
  LOOP
    EXECUTE format('DELETE FROM %s WHERE ctid = ANY (ARRAY('
      'SELECT ctid FROM %1$s WHERE bucket = ANY ($1) LIMIT $2))', leaf)
    USING journal.buckets, most - deleted;
    GET DIAGNOSTICS count = ROW_COUNT;
    deleted := deleted + count;
    EXIT WHEN deleted >= most;
  END LOOP;
  PERFORM set_config('session_replication_role', role, true);
  RETURN deleted;
END;
$$;
