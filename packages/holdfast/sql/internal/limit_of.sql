-- The limit in force: the one that was set for the account comes before the one that an operation brings along, and
-- that before the one that the account had last. Who brings no rate along has none on an account that has one.
CREATE OR REPLACE FUNCTION :"schema".limit_of(
  own bigint, pinned boolean, filled_at timestamptz, asked bigint, every_us bigint
) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN every_us IS NULL AND filled_at IS NOT NULL THEN 0
    WHEN pinned THEN own
    ELSE coalesce(asked, own, 0)
  END
$$;
