-- Deletes rows of these buckets, at most so many; answers how many that were. Triggers and foreign keys of the tables
-- are not asked: to the cluster nothing is deleted. A place (ctid) is one of a single table: others that inherit from it
-- are left alone. Fails where row-level security would leave some out.
CREATE OR REPLACE FUNCTION :"schema".delete_buckets(tables regclass[], buckets smallint[], most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET row_security = off AS $$
DECLARE
  role CONSTANT text := current_setting('session_replication_role');
  deleted integer := 0;
  leaf regclass;
  count integer;
BEGIN
  PERFORM set_config('session_replication_role', 'replica', true);
  FOR leaf IN
    SELECT coalesce(p.relid, t)
    FROM unnest(tables) AS t
    -- Nothing for a table that has no partitions.
    LEFT JOIN LATERAL pg_partition_tree(t) AS p ON true
    WHERE p.isleaf IS NOT false
  LOOP
    EXECUTE format('DELETE FROM ONLY %s WHERE ctid = ANY (ARRAY('
      'SELECT ctid FROM ONLY %1$s WHERE bucket = ANY ($1) LIMIT $2)) AND bucket = ANY ($1)', leaf)
    USING buckets, most - deleted;
    GET DIAGNOSTICS count = ROW_COUNT;
    deleted := deleted + count;
    EXIT WHEN deleted >= most;
  END LOOP;
  PERFORM set_config('session_replication_role', role, true);
  RETURN deleted;
END;
$$;
