-- Makes the partitions of this month and of the months to come, in UTC. Returns how many it made.
-- A month of which rows already went to the default partition is left there; see
-- empty_default_partition().
CREATE OR REPLACE FUNCTION :"schema".extend_partitions(months_ahead integer) RETURNS integer
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  first date;
  made integer := 0;
BEGIN
  FOR i IN 0..months_ahead LOOP
    first := date_trunc('month', now() AT TIME ZONE 'UTC')::date + make_interval(months => i);
    CONTINUE WHEN EXISTS (
      SELECT FROM movement_default
      WHERE at >= first::timestamp AT TIME ZONE 'UTC'
        AND at < (first + interval '1 month') AT TIME ZONE 'UTC'
    );
    IF make_month(first) THEN made := made + 1; END IF;
  END LOOP;
  RETURN made;
END;
$$;

-- A year ahead to begin with. Where somebody reads all movements at this moment, maintain makes what is missing.
DO $$
BEGIN
  PERFORM :"schema".extend_partitions(12);
EXCEPTION WHEN lock_not_available THEN NULL;
END;
$$;
