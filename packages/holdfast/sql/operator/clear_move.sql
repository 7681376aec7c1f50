-- Deletes rows of buckets that are not here, at most so many; answers how many that were. At the source what
-- was handed over, at the target what came before a move was undone or received anew.
CREATE OR REPLACE FUNCTION :"schema".clear_move(move uuid, most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,clearing,undone}');
BEGIN
  IF EXISTS (SELECT FROM shard_map m WHERE m.bucket = ANY (journal.buckets) AND m.here) OR subscribed(move) THEN
    RAISE EXCEPTION 'rows that are here are not deleted' USING ERRCODE = 'HF004';
  END IF;
  RETURN delete_buckets(
    move_tables(ARRAY(SELECT jsonb_array_elements_text(journal.detail -> 'tables'))), journal.buckets, most
  );
END;
$$;
