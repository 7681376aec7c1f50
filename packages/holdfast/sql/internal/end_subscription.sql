-- Ends what a move receives. Its worker has ended when this returns, and no other is started before the
-- transaction ends; slots are left to the source. With a way to it, DROP would go there for slots of tables that
-- are being copied, and wait for whoever makes one: that one waits for every writer there, and where both
-- databases are on one server for this transaction as well, for ever.
CREATE OR REPLACE FUNCTION :"schema".end_subscription(move uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  name CONSTANT text := move_name(move);
BEGIN
  IF subscribed(move) THEN
    EXECUTE format('ALTER SUBSCRIPTION %I DISABLE', name);
    EXECUTE format('ALTER SUBSCRIPTION %I SET (slot_name = NONE)', name);
    EXECUTE format('ALTER SUBSCRIPTION %I CONNECTION %L', name, 'host=/dev/null password=none');
    EXECUTE format('DROP SUBSCRIPTION %I', name);
  END IF;
END;
$$;
