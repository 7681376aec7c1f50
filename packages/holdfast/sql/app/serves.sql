-- Whether this server may work on rows of this bucket: it is the only one, or it has it and keeps it. HF008 if
-- nobody knows before the others were asked.
CREATE OR REPLACE FUNCTION :"schema".serves(bucket integer) RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
BEGIN
  IF NOT away(bucket::smallint) THEN RETURN true; END IF;
  IF unconfirmed() THEN
    RAISE EXCEPTION 'this server has to be compared with the other primaries' USING ERRCODE = 'HF008';
  END IF;
  RETURN false;
END
$$;
