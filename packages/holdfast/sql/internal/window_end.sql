-- When the calendar window that contains a moment ends, in a named time zone; null without a unit. A day is as
-- long as the clocks there make it; hours and minutes are always the same length, also when one comes twice.
CREATE OR REPLACE FUNCTION :"schema".window_end(unit text, zone text, moment timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN unit IN ('minute', 'hour') THEN date_trunc(unit, moment, zone) + ('1 ' || unit)::interval
    ELSE :"schema".first_moment(
      date_trunc(unit, moment AT TIME ZONE zone) + ('1 ' || unit)::interval, zone)
  END
$$;
