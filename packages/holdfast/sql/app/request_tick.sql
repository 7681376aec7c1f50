-- Asks for a manual tick that whoever runs the schedule takes, when it looks next: within a minute. It
-- begins as one that waits for its first attempt. A request that nobody has taken yet is not made twice.
-- Answers its instant in microseconds; null if there is no such schedule.
CREATE OR REPLACE FUNCTION :"schema".request_tick(name text, holder text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  bucket CONSTANT smallint := bucket_of(name);
  moment CONSTANT timestamptz := clock_timestamp();
  asked timestamptz;
BEGIN
  PERFORM FROM schedule x WHERE x.bucket = bucket AND x.name = name;
  IF NOT FOUND THEN RETURN NULL; END IF;
  SELECT x.at INTO asked
  FROM tick x
  WHERE x.bucket = bucket AND x.schedule = name AND x.state = 1 AND x.manual AND x.attempt = 0
  ORDER BY x.at
  LIMIT 1;
  IF FOUND THEN RETURN micros(asked)::text; END IF;
  INSERT INTO tick (bucket, schedule, at, manual, state, attempt, token, holder, lease_until, started_at)
  VALUES (bucket, name, moment, true, 1, 0, gen_random_uuid(), left(holder, 512), moment, moment);
  RETURN micros(moment)::text;
END
$$;
