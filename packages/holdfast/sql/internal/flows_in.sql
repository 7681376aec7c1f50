-- How much a rate limit is refilled with: one unit per "every_us" since "filled_at", up to "burst"; all of it if
-- it was never used. Less than nothing where more was given back than there is room for: that spills over. Of
-- time that a clock shows twice nothing flows in the second time.
CREATE OR REPLACE FUNCTION :"schema".flows_in(
  standing bigint, burst bigint, filled_at timestamptz, every_us bigint, moment timestamptz
) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN filled_at IS NULL THEN burst - standing ELSE least(burst - standing,
    greatest(floor(extract(epoch FROM moment - filled_at) * 1000000 / every_us), 0)::bigint) END
$$;
