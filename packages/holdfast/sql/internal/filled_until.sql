-- When so much more has flowed in, in microseconds since 1970; null if no date is as late as that.
CREATE OR REPLACE FUNCTION :"schema".filled_until(filled_at timestamptz, more bigint, every_us bigint)
RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN x.us OPERATOR(pg_catalog.<=) 8640000000000000000 THEN x.us::bigint END
  FROM (SELECT :"schema".micros(filled_at) OPERATOR(pg_catalog.+) (more::numeric OPERATOR(pg_catalog.*) every_us) AS us) x
$$;
