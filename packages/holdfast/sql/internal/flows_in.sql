-- How much a rate limit is refilled with: one unit per "every_us" since "filled_at", up to "burst"; all of it if
-- it was never used. Less than nothing where more was given back than there is room for: that spills over. Of
-- time that a clock shows twice nothing flows in the second time.
CREATE OR REPLACE FUNCTION :"schema".flows_in(
  standing bigint, burst bigint, filled_at timestamptz, every_us bigint, moment timestamptz
) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN filled_at IS NULL THEN burst OPERATOR(pg_catalog.-) standing ELSE least(burst OPERATOR(pg_catalog.-) standing,
    greatest(pg_catalog.floor(extract(epoch FROM moment OPERATOR(pg_catalog.-) filled_at)
      OPERATOR(pg_catalog.*) 1000000 OPERATOR(pg_catalog./) every_us), 0)::bigint) END
$$;
