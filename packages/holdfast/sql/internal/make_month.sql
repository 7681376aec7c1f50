-- Makes the partition of a month in UTC, by its first day, unless it is there.
CREATE OR REPLACE FUNCTION :"schema".make_month(first date) RETURNS boolean
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  name CONSTANT text := 'movement_' || to_char(first, 'YYYYMM');
BEGIN
  IF to_regclass(format('%I.%I', current_schema(), name)) IS NOT NULL THEN
    RETURN false;
  END IF;
  EXECUTE format(
    'CREATE TABLE %I.%I PARTITION OF %I.movement FOR VALUES FROM (%L) TO (%L)',
    current_schema(), name, current_schema(),
    first::timestamp AT TIME ZONE 'UTC', (first + interval '1 month') AT TIME ZONE 'UTC'
  );
  -- Triggers of statements are not inherited.
  EXECUTE format(
    'CREATE TRIGGER movement_no_truncate BEFORE TRUNCATE ON %I.%I '
      'FOR EACH STATEMENT EXECUTE FUNCTION %I.refuse_change()',
    current_schema(), name, current_schema()
  );
  RETURN true;
END;
$$;
