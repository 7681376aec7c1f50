-- Ends what a move receives. Its worker has ended when this returns, and no other is started before the
-- transaction ends; the slot is left to the source.
CREATE OR REPLACE FUNCTION :"schema".end_subscription(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  name CONSTANT text := move_name(move);
BEGIN
  IF subscribed(move) THEN
    EXECUTE format('ALTER SUBSCRIPTION %I DISABLE', name);
    EXECUTE format('ALTER SUBSCRIPTION %I SET (slot_name = NONE)', name);
    EXECUTE format('DROP SUBSCRIPTION %I', name);
  END IF;
END;
$$;
