-- Nothing is left to do for a move on this server.
CREATE OR REPLACE FUNCTION :"schema".end_move(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{taken,clearing,done,undone}');
BEGIN
  UPDATE shard_move m
  SET step = CASE journal.step WHEN 'undone' THEN 'undone' ELSE 'done' END,
    ended_at = coalesce(m.ended_at, clock_timestamp()), changed_at = clock_timestamp()
  WHERE m.id = move;
END;
$$;
