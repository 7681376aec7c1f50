-- On the target: this move will not be. Answers 'undone', or the step it is at if it has the buckets already.
-- A move that it does not know yet is refused as well, for whoever comes late.
CREATE OR REPLACE FUNCTION :"schema".refuse_move(move uuid, buckets integer[], source text, target text)
RETURNS text
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal shard_move;
BEGIN
  INSERT INTO shard_move (id, buckets, source, target, step)
  VALUES (move, buckets::smallint[], source, target, 'undone') ON CONFLICT DO NOTHING;
  journal := move_at(move, '{copying,undone,taken,done}');
  IF journal.step <> 'copying' THEN
    RETURN journal.step;
  END IF;
  PERFORM end_subscription(move);
  UPDATE shard_move m SET step = 'undone', changed_at = clock_timestamp() WHERE m.id = move;
  RETURN 'undone';
END;
$$;
