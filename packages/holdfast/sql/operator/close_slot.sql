-- On the source, when a move was decided: keeps nothing for it any more. "slots" is the pattern of names of
-- what workers of the target may have left, null if it never had any. Answers whether all are gone.
CREATE OR REPLACE FUNCTION :"schema".close_slot(move uuid, slots text) RETURNS boolean
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{clearing,undone,done}');
  gone boolean := true;
  slot record;
BEGIN
  -- Whoever is about to make one, for a worker that has ended already.
  PERFORM pg_terminate_backend(a.pid) FROM pg_stat_activity a
  WHERE a.backend_type = 'walsender' AND a.application_name ~ slots;
  IF FOUND THEN gone := false; END IF;
  FOR slot IN
    SELECT s.slot_name, s.active_pid FROM pg_replication_slots s
    WHERE s.slot_name = move_name(journal.id) OR s.slot_name ~ slots
  LOOP
    IF slot.active_pid IS NOT NULL THEN
      PERFORM pg_terminate_backend(slot.active_pid);
      gone := false;
      CONTINUE;
    END IF;
    BEGIN
      PERFORM pg_drop_replication_slot(slot.slot_name);
    EXCEPTION
      -- Somebody has taken it up, or dropped it, since.
      WHEN object_in_use OR undefined_object THEN gone := false;
    END;
  END LOOP;
  RETURN gone;
END;
$$;
