-- A moment as clients read it: microseconds since 1970.
CREATE OR REPLACE FUNCTION :"schema".micros(moment timestamptz) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN pg_catalog.isfinite(moment) THEN (extract(epoch FROM moment) OPERATOR(pg_catalog.*) 1000000)::bigint END
$$;
