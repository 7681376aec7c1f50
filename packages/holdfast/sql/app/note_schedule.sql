-- Notes when a schedule ticks, for those who look at it. Never waits: if somebody is at work on it in a
-- transaction, it is left for the next time. Answers whether anything changed.
CREATE OR REPLACE FUNCTION :"schema".note_schedule(name text, rule text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
BEGIN
  PERFORM FROM schedule x
  WHERE x.bucket = bucket_of(name) AND x.name = name AND x.rule IS DISTINCT FROM rule
  FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN false; END IF;
  UPDATE schedule x SET rule = left(rule, 1000) WHERE x.bucket = bucket_of(name) AND x.name = name;
  RETURN true;
END
$$;
