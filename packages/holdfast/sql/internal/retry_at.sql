-- When a refused amount may fit: the end of the calendar window, or the moment at which enough of a
-- rolling one has expired. Null if nothing is known to come back by itself.
CREATE OR REPLACE FUNCTION :"schema".retry_at(
  bucket smallint, account uuid, shortage bigint, rolling boolean, unit text, zone text,
  moment timestamptz
) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
BEGIN
  IF rolling THEN
    RETURN (
      SELECT micros(min(x.expires_at))
      FROM (
        SELECT h.expires_at, sum(h.amount) OVER (ORDER BY h.expires_at, h.made_seq) AS freed
        FROM hold h
        WHERE h.bucket = bucket AND h.account = account AND h.state = 0
      ) x
      WHERE x.freed >= shortage
    );
  END IF;
  RETURN micros(window_end(unit, zone, moment));
END;
$$;
