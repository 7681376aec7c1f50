-- Forgets a key of a rate limit, as if it had never been used; whether there was anything to forget.
CREATE OR REPLACE FUNCTION :"schema".reset_limit(bucket smallint, key uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
BEGIN
  DELETE FROM rate_limit r WHERE r.bucket = bucket AND r.key = key;
  RETURN FOUND;
END
$$;
