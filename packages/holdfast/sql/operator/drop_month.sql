-- Writes down where every account stood at the end of a month, then drops the movements of that month;
-- returns how many accounts that were. Months go in order, the oldest first; at least the month before
-- this one is kept. If a lock is not to be had within a moment, it fails and nothing was changed.
CREATE OR REPLACE FUNCTION :"schema".drop_month(first date) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET lock_timeout = '100ms' AS $$
DECLARE
  name CONSTANT text := 'movement_' || to_char(first, 'YYYYMM');
  ends CONSTANT timestamptz := (first + interval '1 month') AT TIME ZONE 'UTC';
  accounts bigint;
BEGIN
  IF ends > (date_trunc('month', now() AT TIME ZONE 'UTC') - interval '1 month') AT TIME ZONE 'UTC' THEN
    RAISE EXCEPTION 'the movements of this month and of the one before are kept'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  -- What CREATE PUBLICATION waits for: a move that is not seen below begins when we have ended.
  LOCK TABLE ONLY movement IN SHARE UPDATE EXCLUSIVE MODE;
  PERFORM refuse_while_moving();
  -- Nobody writes to so old a month any more; if somebody still does, they are waited for.
  EXECUTE format('LOCK TABLE %I.%I IN SHARE MODE', current_schema(), name);
  IF EXISTS (SELECT FROM movement m WHERE m.at < first::timestamp AT TIME ZONE 'UTC')
    OR EXISTS (SELECT FROM movement_default m WHERE m.at < ends) THEN
    RAISE EXCEPTION 'there are older movements than those of this month'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF EXISTS (SELECT FROM operation o WHERE o.at < ends AND o.seq IS NOT NULL AND o.kind <> 3) THEN
    RAISE EXCEPTION 'operation ids of this month are still remembered: forget them first'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  IF EXISTS (SELECT FROM follower f WHERE f.read_up_to < ends) THEN
    RAISE EXCEPTION 'somebody follows movements and has not read those of this month'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
  EXECUTE format($sql$
    INSERT INTO checkpoint (bucket, account, seq, at, credited, debited, held, allowance)
    SELECT DISTINCT ON (m.bucket, m.account) m.bucket, m.account, m.seq, m.at, m.credited, m.debited,
      m.held, m.allowance
    FROM %I.%I m
    ORDER BY m.bucket, m.account, m.seq DESC
    ON CONFLICT (bucket, account) DO UPDATE
    SET seq = excluded.seq, at = excluded.at, credited = excluded.credited,
      debited = excluded.debited, held = excluded.held, allowance = excluded.allowance
  $sql$, current_schema(), name);
  GET DIAGNOSTICS accounts = ROW_COUNT;
  EXECUTE format('DROP TABLE %I.%I', current_schema(), name);
  RETURN accounts;
END;
$$;
