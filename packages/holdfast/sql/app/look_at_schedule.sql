-- What there is to know before a tick is taken, as JSON: the time, the latest tick, the open tick
-- whose lease ends first, and the rule that is noted. Makes the schedule known if it is not: ticks before this moment are none of
-- its business, or all of them are if "from_ever".
CREATE OR REPLACE FUNCTION :"schema".look_at_schedule(name text, from_ever boolean) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  bucket CONSTANT smallint := bucket_of(name);
  s schedule%ROWTYPE;
  t tick%ROWTYPE;
BEGIN
  SELECT x.* INTO s FROM schedule x WHERE x.bucket = bucket AND x.name = name;
  IF NOT FOUND THEN
    INSERT INTO schedule (bucket, name, last_tick)
    VALUES (bucket, name, CASE WHEN from_ever THEN '-infinity' ELSE clock_timestamp() END)
    ON CONFLICT DO NOTHING;
    SELECT x.* INTO STRICT s FROM schedule x WHERE x.bucket = bucket AND x.name = name;
  END IF;
  SELECT x.* INTO t
  FROM tick x
  WHERE x.bucket = bucket AND x.schedule = name AND x.state < 2
  ORDER BY x.lease_until
  LIMIT 1;
  RETURN json_build_object('now', micros(clock_timestamp()), 'last', micros(s.last_tick),
    'paused', s.paused_at IS NOT NULL, 'open', micros(t.at), 'manual', t.manual,
    'until', micros(t.lease_until), 'rule', s.rule);
END
$$;
