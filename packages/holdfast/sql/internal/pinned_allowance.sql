-- The limit that was set for a key, for a window of it that is about to be opened; null if none was.
-- Whoever sets one has this row locked, and is waited for.
CREATE OR REPLACE FUNCTION :"schema".pinned_allowance(bucket smallint, base uuid) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  b record;
BEGIN
  SELECT x.allowance, x.pinned INTO b
  FROM balance x
  WHERE x.bucket = bucket AND x.account = base
  FOR SHARE;
  RETURN CASE WHEN b.pinned THEN b.allowance END;
END;
$$;
