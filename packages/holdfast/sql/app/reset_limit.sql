-- Forgets what a key of a rate limit has used. The row stays, so that whoever is just about to be the first to use the key is
-- waited for; it is idle, and goes with the others that are.
CREATE OR REPLACE FUNCTION :"schema".reset_limit(bucket smallint, key uuid) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
BEGIN
  INSERT INTO rate_limit AS r (bucket, key, used, until) VALUES (bucket, key, 0, '-infinity')
  ON CONFLICT ON CONSTRAINT rate_limit_pkey DO UPDATE SET used = 0, unit = 1, until = '-infinity';
  RETURN true;
END
$$;
