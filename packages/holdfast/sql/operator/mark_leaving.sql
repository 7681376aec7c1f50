-- On the source: nothing new is begun in these buckets. Who began before may go on, and is waited for.
CREATE OR REPLACE FUNCTION :"schema".mark_leaving(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,leaving}');
BEGIN
  UPDATE shard_map m SET leaving = true WHERE m.bucket = ANY (journal.buckets) AND NOT m.leaving;
  UPDATE shard_move m SET step = 'leaving', changed_at = clock_timestamp() WHERE m.id = move;
END;
$$;
