-- Lets the commit of this transaction wait for the synchronous standby, if there is one, although it has
-- changed nothing. For answers about what somebody else has committed: if their wait was cancelled, or cut
-- short by a crash, it can be seen here and is lost when the standby takes over. Once ours has been
-- waited for, theirs, which lies before it, is there too.
CREATE OR REPLACE FUNCTION :"schema".wait_for_standby() RETURNS void
LANGUAGE plpgsql VOLATILE
SET search_path = :"schema", pg_temp
AS $$
BEGIN
  IF current_setting('synchronous_standby_names') <> '' THEN
    PERFORM pg_logical_emit_message(true, 'holdfast', '');
  END IF;
END
$$;
