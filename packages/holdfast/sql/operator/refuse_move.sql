-- On the target: this move will not be. Answers 'undone', or the step it is at if it has the buckets already.
-- A move that it does not know yet is refused as well, for whoever comes late. HF003 if it is no part of this cluster.
CREATE OR REPLACE FUNCTION :"schema".refuse_move(
  move uuid, cluster uuid, buckets integer[], source text, target text
) RETURNS text
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  journal shard_move;
BEGIN
  IF NOT EXISTS (SELECT FROM shard_self s WHERE s.cluster = cluster AND s.shard = target) THEN
    RAISE EXCEPTION 'it has another name, or is no part of this cluster' USING ERRCODE = 'HF003';
  END IF;
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
