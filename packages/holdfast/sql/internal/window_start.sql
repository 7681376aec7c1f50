-- When the calendar window that contains a moment began, in a named time zone; null without a unit. See
-- window_end().
CREATE OR REPLACE FUNCTION :"schema".window_start(unit text, zone text, moment timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN unit IN ('minute', 'hour') OR zone = 'UTC' THEN date_trunc(unit, moment, zone)
    ELSE :"schema".first_moment(date_trunc(unit, moment AT TIME ZONE zone), zone)
  END
$$;
