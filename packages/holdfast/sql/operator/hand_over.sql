-- On the source, once the target has taken the buckets: says so, and offers nothing any more.
CREATE OR REPLACE FUNCTION :"schema".hand_over(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{leaving,clearing,done}');
BEGIN
  IF journal.step <> 'leaving' THEN
    RETURN;
  END IF;
  UPDATE shard_map m SET here = false, leaving = false, shard = journal.target, version = m.version + 1
  WHERE m.bucket = ANY (journal.buckets);
  DELETE FROM shard_end e WHERE e.move = journal.id;
  EXECUTE format('DROP PUBLICATION IF EXISTS %I', move_name(move));
  UPDATE shard_move m SET step = 'clearing', changed_at = clock_timestamp() WHERE m.id = move;
END;
$$;
