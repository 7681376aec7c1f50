-- What of a rate is used at a moment, as the time in which it comes back at the rate that is asked about: units that were
-- used at another rate stay as many as they are. It is no more than "most": after a limit was lowered, or the clock set
-- back, nothing is left and the rate comes back from there.
CREATE OR REPLACE FUNCTION :"schema".rate_owed(free_us bigint, row_unit bigint, now_us bigint, unit bigint, most bigint)
RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE
AS $$
  SELECT CASE
    WHEN free_us OPERATOR(pg_catalog.<=) now_us THEN 0
    WHEN row_unit OPERATOR(pg_catalog.=) unit THEN least(free_us OPERATOR(pg_catalog.-) now_us, most)
    ELSE least(pg_catalog.ceil((free_us OPERATOR(pg_catalog.-) now_us)::numeric OPERATOR(pg_catalog.*) unit::numeric
      OPERATOR(pg_catalog./) row_unit::numeric), most::numeric)::bigint
  END
$$;
