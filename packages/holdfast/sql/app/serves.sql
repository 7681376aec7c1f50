-- Whether this server may work on rows of this bucket: it is the only one, or it has it and keeps it.
CREATE OR REPLACE FUNCTION :"schema".serves(bucket integer) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
BEGIN
  RETURN NOT away(bucket::smallint);
END
$$;
