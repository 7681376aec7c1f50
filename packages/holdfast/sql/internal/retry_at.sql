-- When a refused amount may fit: the end of the calendar window, or the moment at which enough of a
-- rolling one has expired. Null if nothing is known to come back by itself.
CREATE OR REPLACE FUNCTION :"schema".retry_at(
  bucket smallint, account uuid, shortage bigint, rolling boolean, unit text, zone text,
  moment timestamptz
) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  h record;
  rest bigint := shortage;
BEGIN
  IF rolling THEN
    -- As far as needed: a window may have thousands.
    FOR h IN
      SELECT x.expires_at, x.amount FROM hold x
      WHERE x.bucket = bucket AND x.account = account AND x.state = 0
      ORDER BY x.expires_at
    LOOP
      rest := rest - h.amount;
      IF rest <= 0 THEN RETURN micros(h.expires_at); END IF;
    END LOOP;
    RETURN NULL;
  END IF;
  RETURN micros(window_end(unit, zone, moment));
END;
$$;
