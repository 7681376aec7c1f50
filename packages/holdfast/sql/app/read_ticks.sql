-- The latest ticks of a schedule, newest first, as JSON.
CREATE OR REPLACE FUNCTION :"schema".read_ticks(name text, most integer) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
  SELECT coalesce(json_agg(json_build_object('at', micros(t.at), 'manual', t.manual, 'state', t.state,
    'attempt', t.attempt, 'holder', t.holder, 'started', micros(t.started_at),
    'finished', micros(t.finished_at), 'missed', t.missed, 'error', t.error)
    ORDER BY t.at DESC), '[]')::text
  FROM (
    SELECT x.* FROM tick x
    WHERE x.bucket = bucket_of($1) AND x.schedule = $1
    ORDER BY x.at DESC
    LIMIT $2
  ) t
$$;
