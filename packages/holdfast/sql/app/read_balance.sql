-- What a key stands at, or stood at: as JSON, or null if it was never used. Of a book with calendar
-- windows, the window that contains the moment.
--
-- A past moment is found by halving: numbers are gapless and times never go back within an account,
-- so that twenty look-ups find one movement in a million.
CREATE OR REPLACE FUNCTION :"schema".read_balance(
  bucket smallint, book text, key text, scope text, as_of timestamptz
) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := coalesce(as_of, clock_timestamp());
  a account%ROWTYPE;
  b balance%ROWTYPE;
  c checkpoint%ROWTYPE;
  m movement%ROWTYPE;
  middle_at timestamptz;
  low bigint;
  middle bigint;
  high bigint;
BEGIN
  SELECT x.* INTO a
  FROM account x
  WHERE x.book = book AND x.key = key AND x.scope = scope AND x.bucket = bucket
    AND x.window_start <= moment AND x.window_start > '-infinity'
  ORDER BY x.window_start DESC
  LIMIT 1;
  IF NOT FOUND OR a.window_end <= moment THEN
    SELECT x.* INTO a
    FROM account x
    WHERE x.book = book AND x.key = key AND x.scope = scope AND x.bucket = bucket
      AND x.window_start = '-infinity';
    IF NOT FOUND THEN RETURN NULL; END IF;
  END IF;
  SELECT x.* INTO STRICT b FROM balance x WHERE x.bucket = bucket AND x.account = a.id;
  m.seq := b.seq;
  m.at := b.moved_at;
  m.credited := b.credited;
  m.debited := b.debited;
  m.held := b.held;
  m.allowance := b.allowance;
  -- Without a moment it is as it is, also if the clock has gone back since.
  IF as_of IS NOT NULL AND b.moved_at > moment THEN
    SELECT x.* INTO c FROM checkpoint x WHERE x.bucket = bucket AND x.account = a.id;
    IF c.at > moment THEN RETURN json_build_object('gone', true); END IF;
    low := coalesce(c.seq, 0);
    high := b.seq + 1;
    WHILE high - low > 1 LOOP
      middle := low + (high - low) / 2;
      SELECT x.at INTO middle_at
      FROM movement x
      WHERE x.bucket = bucket AND x.account = a.id AND x.seq = middle;
      IF NOT FOUND THEN
        RAISE EXCEPTION 'a movement of this account is missing: run an audit'
          USING ERRCODE = 'data_corrupted';
      END IF;
      IF middle_at <= moment THEN low := middle; ELSE high := middle; END IF;
    END LOOP;
    m.seq := low;
    m.at := c.at;
    m.credited := coalesce(c.credited, 0);
    m.debited := coalesce(c.debited, 0);
    m.held := coalesce(c.held, 0);
    m.allowance := coalesce(c.allowance, 0);
    IF low > coalesce(c.seq, 0) THEN
      SELECT x.* INTO STRICT m
      FROM movement x
      WHERE x.bucket = bucket AND x.account = a.id AND x.seq = low;
    END IF;
  END IF;
  RETURN json_build_object('seq', m.seq::text, 'at', micros(m.at)::text,
    'credited', m.credited::text, 'debited', m.debited::text, 'held', m.held::text,
    'allowance', m.allowance::text, 'start', micros(a.window_start)::text,
    'end', micros(a.window_end)::text, 'due', as_of IS NULL AND b.due_at <= moment);
END
$$;
