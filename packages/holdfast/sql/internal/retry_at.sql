-- When a refused amount may fit: the end of the calendar window, or the moment at which enough of a
-- rolling one has expired. Null if nothing is known to come back by itself.
CREATE OR REPLACE FUNCTION :"schema".retry_at(
  bucket smallint, account uuid, shortage bigint, rolling boolean, unit text, zone text,
  moment timestamptz
) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
BEGIN
  IF rolling THEN RETURN rolled_on_at(bucket, account, shortage, NULL, NULL, NULL); END IF;
  RETURN micros(window_end(unit, zone, moment));
END;
$$;
