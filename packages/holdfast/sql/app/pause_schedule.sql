-- Stops a schedule from taking ticks, or lets it go on with the next one: what fell into the pause is
-- passed over. Waits for a tick that is at work in a transaction. Answers whether anything changed.
CREATE OR REPLACE FUNCTION :"schema".pause_schedule(name text, pause boolean) RETURNS boolean
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
BEGIN
  INSERT INTO schedule (bucket, name, last_tick) VALUES (bucket_of(name), name, clock_timestamp())
  ON CONFLICT DO NOTHING;
  UPDATE schedule x
  SET paused_at = CASE WHEN pause THEN clock_timestamp() END,
    last_tick = CASE WHEN pause THEN x.last_tick ELSE greatest(x.last_tick, clock_timestamp()) END
  WHERE x.bucket = bucket_of(name) AND x.name = name AND (x.paused_at IS NULL) = pause;
  RETURN FOUND;
END
$$;
