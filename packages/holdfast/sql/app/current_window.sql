-- When the calendar window of this moment began and when it ends, as JSON.
CREATE OR REPLACE FUNCTION :"schema".current_window(unit text, zone text) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
BEGIN
  RETURN json_build_object('start', micros(window_start(unit, zone, moment))::text,
    'end', micros(window_end(unit, zone, moment))::text);
END
$$;
