-- What an account can give at a moment. Every way to take or to look decides by this:
--
--   credited - debited - held + the limit in force
--
-- A rate limit has, instead of that limit, what flows in up to it.
CREATE OR REPLACE FUNCTION :"schema".can_give(
  credited bigint, debited bigint, held bigint, own bigint, pinned boolean, filled_at timestamptz,
  asked bigint, every_us bigint, moment timestamptz
) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT credited OPERATOR(pg_catalog.-) debited OPERATOR(pg_catalog.-) held OPERATOR(pg_catalog.+) CASE WHEN every_us IS NULL
    THEN :"schema".limit_of(own, pinned, filled_at, asked, every_us)
    ELSE :"schema".flows_in(credited OPERATOR(pg_catalog.-) debited OPERATOR(pg_catalog.-) held,
      :"schema".limit_of(own, pinned, filled_at, asked, every_us), filled_at, every_us, moment)
  END
$$;
