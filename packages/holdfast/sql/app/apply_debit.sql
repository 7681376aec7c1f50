-- apply_one() for the commonest line there is: a debit under a limit, of an account whose scope is its key and that has no
-- windows, without a note, its operation id a UUID, its amounts exact as JavaScript numbers. Seven parameters and not
-- seventeen, because a call that is not prepared looks up and converts each of them; three plain statements and not one
-- with parts. What is not plain goes through apply(), which decides the same way.
--
-- The number of the account is read as the statement begins. Whoever changed it since made the update wait and then
-- find another number: nothing is decided on a stale row, and the second attempt sees an id that came in between.
CREATE OR REPLACE FUNCTION :"schema".apply_debit(
  bucket smallint,
  account uuid,
  id uuid,
  amount bigint,
  allowance bigint,
  book text,
  key text
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
DECLARE
  credited bigint;
  debited bigint;
  held bigint;
  seq bigint;
  at timestamptz;
BEGIN
  FOR attempt IN 1..2 LOOP
    UPDATE balance x
    SET debited = x.debited + amount, allowance = allowance, seq = x.seq + 1,
      moved_at = greatest(x.moved_at, clock_timestamp())
    WHERE x.bucket = bucket AND x.account = account
      AND x.seq = (SELECT y.seq FROM balance y WHERE y.bucket = bucket AND y.account = account)
      AND can_give(x.credited, x.debited, x.held, x.allowance, x.pinned, x.refilled_at, allowance, NULL, NULL)
        >= amount
      AND x.due_at > clock_timestamp() AND NOT (x.granted OR x.pinned) AND x.refilled_at IS NULL
      -- Whatever is exact as a JavaScript number too; the rest is not plain.
      AND amount BETWEEN 1 AND 9007199254740991 AND allowance BETWEEN 0 AND 9007199254740991
      AND greatest(x.credited + allowance, x.debited + amount + x.held) <= 9007199254740991
      AND NOT EXISTS (
        SELECT FROM operation o WHERE o.bucket = bucket AND o.owner = account AND o.id = id
      )
    RETURNING x.credited, x.debited, x.held, x.seq, x.moved_at INTO credited, debited, held, seq, at;
    IF FOUND THEN
      INSERT INTO operation (bucket, owner, id, line, kind, account, amount, seq, at)
      VALUES (bucket, account, id, 0, 2, account, amount, seq, at);
      INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited, held,
        allowance, operation_id)
      VALUES (bucket, 2, account, seq, at, 0, amount, 0, credited, debited, held, allowance, id::text);
      RETURN concat_ws(',', 1, 0, seq, credited, debited, held, allowance, micros(at));
    END IF;
  END LOOP;
  -- Flags: exact as JavaScript numbers, and no scope was named.
  RETURN apply(ARRAY[1], ARRAY[bucket], ARRAY[account], ARRAY[account], ARRAY[id], ARRAY[id::text],
    ARRAY[2::smallint], ARRAY[book], ARRAY[key], ARRAY[key], ARRAY[amount], ARRAY[allowance], ARRAY[768],
    NULL, NULL, NULL, NULL, NULL, NULL, NULL, NULL);
END
$$;
