-- The number of the advisory lock under which the work of a key is done. Two keys with the same number
-- would wait for each other and nothing else: the primary key of "once" is what counts.
CREATE OR REPLACE FUNCTION :"schema".once_lock(key text, scope text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT ('x' OPERATOR(pg_catalog.||) pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
    pg_catalog.concat('holdfast:once:', pg_catalog.length(scope), ':', scope, key), 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;
