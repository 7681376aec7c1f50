-- The journal of a move, locked until the transaction ends; HF004 if it is at none of these steps. Every
-- step begins with it, so that whoever was stopped for a while and goes on finds out that others went ahead.
CREATE OR REPLACE FUNCTION :"schema".move_at(move uuid, steps text[]) RETURNS :"schema".shard_move
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal shard_move;
BEGIN
  PERFORM pg_advisory_xact_lock(hashtextextended(move_name(move), 0));
  SELECT m.* INTO journal FROM shard_move m WHERE m.id = move FOR UPDATE;
  IF journal.step = ANY (steps) THEN
    RETURN journal;
  END IF;
  RAISE EXCEPTION 'the move is not at this step' USING ERRCODE = 'HF004';
END;
$$;
