-- Takes a tick, or says why not. "at" is its scheduled instant; a manual one without it is taken of
-- this moment. Asked again with the same token, it answers the same.
--
-- The schedule's row is locked first, without waiting: whoever has it works on a tick in a transaction,
-- or takes one right now. Everything below is decided under that lock.
--
-- overlap  0 skip a tick whose instant comes while another is at work; 1 wait for it; 2 let both work
-- retake   an attempt whose lease ran out may be followed by another one; otherwise it is lost
-- run      false: pass over this tick and all before it
-- after    the latest tick that the caller has seen taken
-- answer   claimed,attempt,at,now; skipped; lost; or, with nothing changed: busy; taken; passed; paused;
--          early,microseconds
CREATE OR REPLACE FUNCTION :"schema".claim_tick(
  name text, at timestamptz, manual boolean, token uuid, holder text, lease_ms bigint,
  overlap integer, retake boolean, most integer, missed integer, run boolean, after timestamptz
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  bucket CONSTANT smallint := bucket_of(name);
  moment timestamptz;
  state smallint := CASE WHEN run THEN 0 ELSE 5 END;
  s schedule%ROWTYPE;
  t tick%ROWTYPE;
BEGIN
  SELECT x.* INTO s
  FROM schedule x
  WHERE x.bucket = bucket AND x.name = name
  FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN 'busy'; END IF;
  -- After the lock: what others finished before we had it lies before this moment.
  moment := clock_timestamp();
  IF at IS NULL THEN
    -- Asked again: the one that was taken the first time.
    SELECT x.at INTO at
    FROM tick x
    WHERE x.bucket = bucket AND x.schedule = name AND x.manual AND x.state = 0 AND x.token = token;
    at := coalesce(at, moment);
  END IF;
  IF s.paused_at IS NOT NULL AND NOT manual THEN RETURN 'paused'; END IF;
  -- What the caller has seen is not here: it was told by a server that has been replaced since. To take this
  -- tick would be to pass over the one that is missing.
  IF after > s.last_tick THEN RETURN 'busy'; END IF;
  IF at > moment THEN RETURN concat_ws(',', 'early', micros(at) - micros(moment)); END IF;

  SELECT x.* INTO t
  FROM tick x
  WHERE x.bucket = bucket AND x.schedule = name AND x.at = at AND x.manual = manual
  FOR NO KEY UPDATE;
  IF FOUND THEN
    IF t.state = 0 AND t.token = token THEN
      RETURN concat_ws(',', 'claimed', t.attempt, micros(at), micros(moment));
    END IF;
    IF t.state > 1 OR t.lease_until > moment THEN RETURN 'taken'; END IF;
    IF t.state = 0 AND NOT retake OR t.attempt >= most THEN
      -- Nobody was at work any more when its lease ended.
      UPDATE tick x SET state = 4, finished_at = t.lease_until, lease_until = NULL
      WHERE x.bucket = bucket AND x.schedule = name AND x.at = at AND x.manual = manual;
      RETURN 'lost';
    END IF;
  ELSIF NOT manual AND at <= s.last_tick THEN
    RETURN 'passed';
  END IF;

  -- A manual tick, one that is owed another attempt, and one that passes over others are not dropped.
  IF run AND overlap = 0 AND NOT manual AND t.at IS NULL AND EXISTS (
    -- Its instant came while another was at work, whether or not that has ended since.
    SELECT FROM tick x
    WHERE x.bucket = bucket AND x.schedule = name AND x.started_at <= at AND x.state <> 5
      AND (x.finished_at > at OR x.state = 0 AND x.lease_until > moment)
  ) THEN
    state := 5;
  ELSIF run AND overlap < 2 AND EXISTS (
    SELECT FROM tick x
    WHERE x.bucket = bucket AND x.schedule = name AND x.state = 0 AND x.lease_until > moment
  ) THEN
    RETURN 'busy';
  END IF;

  IF t.at IS NOT NULL THEN
    UPDATE tick x
    SET state = 0, attempt = x.attempt + 1, token = token, holder = holder, started_at = moment,
      finished_at = NULL, lease_until = moment + lease_ms * interval '1 millisecond'
    WHERE x.bucket = bucket AND x.schedule = name AND x.at = at AND x.manual = manual;
  ELSE
    INSERT INTO tick (bucket, schedule, at, manual, state, attempt, token, holder, started_at,
      finished_at, lease_until, missed)
    VALUES (bucket, name, at, manual, state, CASE WHEN state = 0 THEN 1 ELSE 0 END, token, holder,
      moment, CASE WHEN state = 5 THEN moment END,
      CASE WHEN state = 0 THEN moment + lease_ms * interval '1 millisecond' END, missed);
    IF NOT manual THEN
      UPDATE schedule x SET last_tick = at WHERE x.bucket = bucket AND x.name = name;
    END IF;
  END IF;
  IF state = 5 THEN RETURN 'skipped'; END IF;
  RETURN concat_ws(',', 'claimed', coalesce(t.attempt, 0) + 1, micros(at), micros(moment));
END
$$;
