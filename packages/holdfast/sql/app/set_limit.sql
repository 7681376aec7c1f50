-- Sets the allowance of one key, or hands it back to what operations bring along. Answers like
-- apply() with one line, which speaks of the key's current window, or of the key's own account if it has none.
--
-- Of a book with calendar windows that own account only carries the limit: windows copy it when they are
-- opened. The current window and the next are opened here, so that whoever opens one of them at the
-- same time has come first and is seen. What could be missed is a window after the next, and only if
-- it is opened while the first limit of this key waits for its commit.
CREATE OR REPLACE FUNCTION :"schema".set_limit(
  bucket smallint,
  base uuid,
  owner uuid,
  id uuid,
  operation_id text,
  book text,
  key text,
  scope text,
  allowance bigint,
  pinned boolean,
  walled boolean,
  unit text,
  zone text,
  note text,
  unscoped boolean DEFAULT false
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  largest CONSTANT bigint := 4611686018427387903;
  moment timestamptz := clock_timestamp();
  next CONSTANT timestamptz := window_end(unit, zone, moment);
  accounts uuid[] := ARRAY[base];
  -- The account that is spoken of.
  told uuid;
  -- What tells one call from another under the same id.
  asked CONSTANT bigint := CASE WHEN pinned THEN allowance ELSE -1 END;
  status smallint := 0;
  place uuid;
  b balance%ROWTYPE;
  past record;
  answer record;
  field text;
BEGIN
  IF allowance IS NULL OR pinned IS NULL OR allowance NOT BETWEEN 0 AND largest THEN
    RAISE EXCEPTION 'a limit is a number from 0 to 2^62 - 1' USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF unscoped AND NOT EXISTS (SELECT FROM balance x WHERE x.bucket = bucket AND x.account = base)
    AND is_forgotten_scope(book, key, scope) THEN
    RAISE EXCEPTION 'the key is in use in another scope' USING ERRCODE = 'HF006';
  END IF;
  PERFORM open_account(bucket, base, base, book, key, scope, NULL, NULL, allowance, walled, moment);
  -- This row first: windows are opened under a share of its lock.
  PERFORM FROM balance x WHERE x.bucket = bucket AND x.account = base FOR NO KEY UPDATE;
  SELECT o.kind, o.account, o.amount, m.seq, m.credited, m.debited, m.held, m.allowance, m.at,
    m.operation_id, m.note
  INTO past
  FROM operation o
  LEFT JOIN movement m ON m.bucket = o.bucket AND m.account = o.account AND m.seq = o.seq AND m.at = o.at
  WHERE o.bucket = bucket AND o.owner = owner AND o.id = id AND o.line = 0;
  IF FOUND THEN
    field := CASE
      WHEN past.operation_id <> operation_id THEN 'operationId'
      WHEN past.kind <> 14 THEN 'kind'
      WHEN NOT EXISTS (
        SELECT FROM account a
        WHERE a.bucket = bucket AND a.id = past.account AND a.book = book AND a.key = key AND a.scope = scope
      ) THEN 'key'
      WHEN past.amount <> asked THEN 'limit'
      WHEN past.note IS DISTINCT FROM note::jsonb THEN 'note'
    END;
    IF field IS NOT NULL THEN
      SELECT x.* INTO b
      FROM standing(bucket, coalesce(window_account(base, window_start(unit, zone, moment)), base), base) x;
      RETURN concat_ws(',', 1, 3, coalesce(b.seq, 0), coalesce(b.credited, 0), coalesce(b.debited, 0),
        coalesce(b.held, 0), coalesce(b.allowance, 0), coalesce(micros(b.moved_at), 0), field);
    END IF;
    RETURN concat_ws(',', 1, 1, past.seq, past.credited, past.debited, past.held, past.allowance,
      micros(past.at));
  END IF;
  told := coalesce(window_account(base, window_start(unit, zone, moment)), base);
  IF unit IS NOT NULL THEN
    accounts := accounts || told || window_account(base, next);
    PERFORM open_account(bucket, accounts[2], base, book, key, scope, unit, zone, allowance, walled,
      moment);
    PERFORM open_account(bucket, accounts[3], base, book, key, scope, unit, zone, allowance, walled,
      next);
  END IF;
  FOR place IN SELECT u FROM unnest(accounts) u ORDER BY u LOOP
    SELECT x.* INTO STRICT b
    FROM balance x WHERE x.bucket = bucket AND x.account = place
    FOR NO KEY UPDATE;
    IF b.due_at <= clock_timestamp() THEN
      PERFORM fall_due(bucket, place);
      SELECT x.* INTO STRICT b FROM balance x WHERE x.bucket = bucket AND x.account = place;
    END IF;
    IF b.walled AND b.credited - b.debited - b.held + allowance < 0 THEN
      status := 2;
    END IF;
    IF place = told OR status = 2 THEN answer := b; END IF;
    EXIT WHEN status = 2;
  END LOOP;
  IF status = 0 THEN
    moment := clock_timestamp();
    INSERT INTO operation (bucket, owner, id, line, kind, account, amount, seq, at)
    SELECT bucket, owner, id, 0, 14, told, asked, x.seq + 1, greatest(x.moved_at, moment)
    FROM balance x
    WHERE x.bucket = bucket AND x.account = told
    ON CONFLICT DO NOTHING;
    IF NOT FOUND THEN
      -- By somebody who locked another account.
      RAISE EXCEPTION 'the same operation id was applied elsewhere at the same moment'
        USING ERRCODE = 'serialization_failure';
    END IF;
    WITH changed AS (
      UPDATE balance x
      SET allowance = set_limit.allowance, pinned = set_limit.pinned, seq = x.seq + 1,
        moved_at = greatest(x.moved_at, moment)
      WHERE x.bucket = bucket AND x.account = ANY (accounts)
      RETURNING x.*
    ), moved AS (
      INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited,
        held, allowance, operation_id, note)
      SELECT c.bucket, 14, c.account, c.seq, c.moved_at, 0, 0, 0, c.credited, c.debited, c.held,
        c.allowance, operation_id, note::jsonb
      FROM changed c
    )
    SELECT c.* INTO answer FROM changed c WHERE c.account = told;
  END IF;
  RETURN concat_ws(',', 1, status, answer.seq, answer.credited, answer.debited, answer.held,
    answer.allowance, coalesce(micros(answer.moved_at), 0));
END
$$;
