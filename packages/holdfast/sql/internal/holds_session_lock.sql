-- Whether the session that asks holds this advisory lock (the kind with one bigint).
CREATE OR REPLACE FUNCTION :"schema".holds_session_lock(id bigint) RETURNS boolean
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp AS $$
  SELECT EXISTS (
    SELECT FROM pg_catalog.pg_locks l
    WHERE l.locktype = 'advisory' AND l.pid = pg_backend_pid() AND l.granted AND l.objsubid = 1
      AND l.mode = 'ExclusiveLock'
      AND l.database = (SELECT d.oid FROM pg_catalog.pg_database d WHERE d.datname = current_database())
      AND (l.classid::bigint << 32) | l.objid::bigint = id
  )
$$;
