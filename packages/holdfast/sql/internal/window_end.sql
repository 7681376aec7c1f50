-- When the calendar window that contains a moment ends, in a named time zone; null without a unit. A day is as
-- long as the clocks there make it; hours and minutes are always the same length, also when one comes twice.
CREATE OR REPLACE FUNCTION :"schema".window_end(unit text, zone text, moment timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN unit OPERATOR(pg_catalog.=) ANY ('{minute,hour}')
      THEN pg_catalog.date_trunc(unit, moment, zone) OPERATOR(pg_catalog.+) ('1 ' OPERATOR(pg_catalog.||) unit)::interval
    ELSE :"schema".first_moment(
      pg_catalog.date_trunc(unit, moment AT TIME ZONE zone)
        OPERATOR(pg_catalog.+) ('1 ' OPERATOR(pg_catalog.||) unit)::interval, zone)
  END
$$;
