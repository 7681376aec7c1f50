-- On the source, once the target has taken the buckets: says so, and offers nothing any more. One that came back from
-- a backup may have forgotten that it marked them.
CREATE OR REPLACE FUNCTION :"schema".hand_over(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,leaving,clearing,done}');
BEGIN
  IF journal.step NOT IN ('copying', 'leaving') THEN
    RETURN;
  END IF;
  UPDATE shard_map m SET here = false, leaving = false, shard = journal.target, version = m.version + 1
  WHERE m.bucket = ANY (journal.buckets) AND m.here;
  DELETE FROM shard_end e WHERE e.move = journal.id;
  EXECUTE format('DROP PUBLICATION IF EXISTS %I', move_name(move));
  UPDATE shard_move m SET step = 'clearing', changed_at = clock_timestamp() WHERE m.id = move;
END;
$$;
