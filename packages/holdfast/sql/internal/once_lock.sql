-- The number of the advisory lock under which the work of a key is done. Two keys with the same number
-- would wait for each other and nothing else: the primary key of "once" is what counts.
CREATE OR REPLACE FUNCTION :"schema".once_lock(key text, scope text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT ('x' || encode(substr(sha256(convert_to(
    concat('holdfast:once:', length(scope), ':', scope, key), 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;
