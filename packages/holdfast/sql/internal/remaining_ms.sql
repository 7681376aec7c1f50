-- Whole milliseconds from one moment to a later one, never less than none.
CREATE OR REPLACE FUNCTION :"schema".remaining_ms(until timestamptz, since timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT greatest(0, pg_catalog.ceil(
    extract(epoch FROM until OPERATOR(pg_catalog.-) since) OPERATOR(pg_catalog.*) 1000))::bigint
$$;
