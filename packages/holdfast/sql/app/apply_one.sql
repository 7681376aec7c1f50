-- apply() for one line of the plain kinds (credit, debit, hold, opening, return), in as few steps as
-- it takes. Whatever is not plain (a shortage, a replay, a new account, something due) goes through
-- apply(), which decides the same way.
--
-- The account is read without a lock, then changed in one statement on condition that its number is
-- still the same. Whoever changed it in between made the statement wait and then find nothing: it
-- holds the row now, and the second attempt succeeds. So nothing is decided on a stale row, and an
-- operation id that came in between is seen.
CREATE OR REPLACE FUNCTION :"schema".apply_one(
  bucket smallint,
  base uuid,
  owner uuid,
  id uuid,
  operation_id text,
  kind smallint,
  book text,
  key text,
  scope text,
  amount bigint,
  allowance bigint,
  flag integer,
  note text,
  unit text,
  zone text,
  ttl_ms bigint,
  ref text
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
DECLARE
  account uuid := base;
  credit bigint := 0;
  debit bigint := 0;
  holding bigint := 0;
  until timestamptz;
  seen bigint;
  answer text;
BEGIN
  IF unit IS NOT NULL THEN
    account := window_account(base, window_start(unit, zone, clock_timestamp()));
  END IF;
  IF kind = 2 THEN
    debit := amount;
  ELSIF kind = 3 THEN
    holding := amount;
  ELSE
    credit := amount;
  END IF;
  FOR attempt IN 1..2 LOOP
    SELECT x.seq INTO seen
    FROM balance x
    WHERE x.bucket = bucket AND x.account = account
      AND (credit > 0
        OR can_give(x.credited, x.debited, x.held, x.allowance, x.pinned, x.refilled_at, allowance, NULL, NULL)
          >= amount)
      AND x.due_at > clock_timestamp() AND NOT (x.granted OR x.pinned) AND x.refilled_at IS NULL
      -- Whatever is exact as a JavaScript number too; the rest is not plain.
      AND amount BETWEEN 1 AND 9007199254740991 AND coalesce(allowance, 0) BETWEEN 0 AND 9007199254740991
      AND greatest(x.credited + credit + coalesce(allowance, x.allowance), x.debited + debit + x.held + holding)
        <= 9007199254740991
      AND kind IN (1, 2, 3, 12, 13) AND flag & 1153 = 0
      AND (kind <> 3 OR ttl_ms BETWEEN 1 AND 100 * 366 * 86400000::bigint);
    EXIT WHEN NOT FOUND;
    WITH changed AS (
      UPDATE balance x
      SET credited = x.credited + credit, debited = x.debited + debit, held = x.held + holding,
        -- Of a walled account: a lower backorder only stops what comes next.
        allowance = CASE WHEN x.walled AND credit > 0
          THEN greatest(coalesce(allowance, x.allowance), x.debited + x.held - x.credited - credit)
          ELSE coalesce(allowance, x.allowance) END,
        seq = x.seq + 1, moved_at = greatest(x.moved_at, clock_timestamp()),
        -- May have waited for the row since, so that this can be too early, but never too late.
        due_at = CASE WHEN kind = 3
          THEN least(x.due_at, clock_timestamp() + ttl_ms * interval '1 millisecond') ELSE x.due_at END
      WHERE x.bucket = bucket AND x.account = account AND x.seq = seen
        AND NOT EXISTS (
          SELECT FROM operation o WHERE o.bucket = bucket AND o.owner = owner AND o.id = id
        )
      RETURNING x.credited, x.debited, x.held, x.allowance, x.seq, x.moved_at
    ), remembered AS (
      INSERT INTO operation (bucket, owner, id, line, kind, account, amount, seq, at)
      SELECT bucket, owner, id, 0, kind, account, amount, c.seq, c.moved_at
      FROM changed c
    )
    INSERT INTO movement AS v (bucket, kind, account, seq, at, credit, debit, hold, credited, debited,
      held, allowance, operation_id, hold_id, note)
    SELECT bucket, kind, account, c.seq, c.moved_at, credit, debit, holding, c.credited, c.debited,
      c.held, c.allowance, operation_id, CASE WHEN kind = 3 THEN ref::uuid END, note::jsonb
    FROM changed c
    RETURNING concat_ws(',', 1, 0, v.seq, v.credited, v.debited, v.held, v.allowance, micros(v.at))
    INTO answer;
    IF FOUND AND kind = 3 THEN
      -- Its time begins when the row is ours.
      until := clock_timestamp() + ttl_ms * interval '1 millisecond';
      INSERT INTO hold (bucket, id, account, amount, expires_at, made_seq, operation_id)
      VALUES (bucket, ref::uuid, account, amount, until, seen + 1, operation_id);
      RETURN concat_ws(',', answer, micros(until));
    END IF;
    IF FOUND THEN RETURN answer; END IF;
  END LOOP;
  RETURN apply(ARRAY[1], ARRAY[bucket], ARRAY[base], ARRAY[owner], ARRAY[id], ARRAY[operation_id],
    ARRAY[kind], ARRAY[book], ARRAY[key], ARRAY[scope], ARRAY[amount], ARRAY[allowance], ARRAY[flag],
    NULL, ARRAY[note], ARRAY[unit], ARRAY[zone], NULL, ARRAY[ttl_ms], ARRAY[ref], NULL);
END
$$;
