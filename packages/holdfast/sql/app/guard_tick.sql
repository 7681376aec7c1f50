-- Whether a tick is still the caller's: held or lost. To be asked in the transaction of the write that it
-- protects: the row is locked FOR SHARE, so that nobody takes the tick over before that has ended.
CREATE OR REPLACE FUNCTION :"schema".guard_tick(
  name text, at timestamptz, manual boolean, token uuid
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
BEGIN
  PERFORM FROM tick x
  WHERE x.bucket = bucket_of(name) AND x.schedule = name AND x.at = at AND x.manual = manual
    AND x.token = token AND x.state = 0
  FOR SHARE;
  RETURN CASE WHEN FOUND THEN 'held' ELSE 'lost' END;
END
$$;
