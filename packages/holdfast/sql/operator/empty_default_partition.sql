-- Moves what went to the default partition, because its month had none, to a partition of that month.
-- Returns how many movements that were. Nobody else can read or write movements meanwhile; if the
-- lock is not to be had within a moment, it fails and nothing was changed.
CREATE OR REPLACE FUNCTION :"schema".empty_default_partition() RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  months date[];
  first date;
  moved bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM movement_default) THEN
    RETURN 0;
  END IF;
  LOCK TABLE movement IN ACCESS EXCLUSIVE MODE;
  PERFORM refuse_while_moving();
  SELECT array_agg(DISTINCT date_trunc('month', at AT TIME ZONE 'UTC')::date) INTO months
  FROM movement_default;
  -- Detached, it is a table like any other: the rows can be taken out of it.
  EXECUTE format('ALTER TABLE %I.movement DETACH PARTITION %1$I.movement_default', current_schema());
  FOREACH first IN ARRAY months LOOP
    PERFORM make_month(first);
  END LOOP;
  INSERT INTO movement SELECT * FROM movement_default;
  GET DIAGNOSTICS moved = ROW_COUNT;
  EXECUTE format('ALTER TABLE %I.movement_default DISABLE TRIGGER movement_no_truncate',
    current_schema());
  EXECUTE format('TRUNCATE %I.movement_default', current_schema());
  EXECUTE format('ALTER TABLE %I.movement_default ENABLE TRIGGER movement_no_truncate',
    current_schema());
  EXECUTE format('ALTER TABLE %I.movement ATTACH PARTITION %1$I.movement_default DEFAULT',
    current_schema());
  RETURN moved;
END;
$$;
