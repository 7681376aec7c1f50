-- On the source: keeps what changes from now on until it was sent. Waits until every transaction that
-- writes, in any database of the server, has ended once; the publication has to be there before.
CREATE OR REPLACE FUNCTION :"schema".open_slot(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  name CONSTANT text := move_name(move);
BEGIN
  -- As move_at() does, but without a transaction id of its own, for which it would wait.
  PERFORM pg_advisory_xact_lock(hashtextextended(name, 0));
  IF NOT EXISTS (SELECT FROM shard_move m WHERE m.id = move AND m.step = 'copying') THEN
    RAISE EXCEPTION 'the move is not at this step' USING ERRCODE = 'HF004';
  END IF;
  IF NOT EXISTS (SELECT FROM pg_replication_slots s WHERE s.slot_name = name) THEN
    PERFORM pg_create_logical_replication_slot(name, 'pgoutput');
  END IF;
END;
$$;
