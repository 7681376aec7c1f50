-- On the source, once the target has refused: the buckets stay, and are served again.
CREATE OR REPLACE FUNCTION :"schema".undo_move(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,leaving,undone}');
BEGIN
  IF journal.step = 'undone' THEN
    RETURN;
  END IF;
  UPDATE shard_map m SET leaving = false WHERE m.bucket = ANY (journal.buckets) AND m.leaving;
  DELETE FROM shard_end e WHERE e.move = journal.id;
  EXECUTE format('DROP PUBLICATION IF EXISTS %I', move_name(move));
  UPDATE shard_move m SET step = 'undone', changed_at = clock_timestamp() WHERE m.id = move;
END;
$$;
