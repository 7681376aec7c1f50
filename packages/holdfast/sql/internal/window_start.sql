-- When the calendar window that contains a moment began, in a named time zone; null without a unit. See
-- window_end().
CREATE OR REPLACE FUNCTION :"schema".window_start(unit text, zone text, moment timestamptz)
RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE
    WHEN unit OPERATOR(pg_catalog.=) ANY ('{minute,hour}') OR zone OPERATOR(pg_catalog.=) 'UTC'
      THEN pg_catalog.date_trunc(unit, moment, zone)
    ELSE :"schema".first_moment(pg_catalog.date_trunc(unit, moment AT TIME ZONE zone), zone)
  END
$$;
