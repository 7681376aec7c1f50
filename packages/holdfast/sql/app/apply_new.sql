-- apply_plain() for credits, debits, openings and returns whose ids are new, as nearly all are: nobody looks whether one
-- is known. One that is ends the call with PostgreSQL's 23505 and nothing done, and the caller asks apply_plain(). What
-- is left out is as there; the same lines are applied the same way.
--
-- Of the first six, an array of one element is that for every line. Accounts have no calendar windows, and lines no
-- note. An owner that is null is the account, and an operation id that is null is the id as text.
--
-- Rows are kept narrow on their way: what only the inserts need is taken from the arrays there.
--
-- answer a list in JSON: the moment in microseconds, then for each account that was changed the number of its last
--        line, how many lines it had, and what it has after the last of them: seq, credited, debited, held, and by
--        how many microseconds its last movement is later than the moment
CREATE OR REPLACE FUNCTION :"schema".apply_new(
  buckets smallint[],
  bases uuid[],
  ids uuid[],
  kinds smallint[],
  amounts bigint[],
  allowances bigint[],
  owners uuid[],
  operation_ids text[]
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_mergejoin = off
SET enable_hashjoin = off
SET enable_memoize = off
SET enable_material = off
SET jit = off
AS $$
#variable_conflict use_column
DECLARE
  -- Exact as a JavaScript number, whoever reads it.
  largest CONSTANT bigint := 9007199254740991;
  most_lines CONSTANT integer := 1024;
  most_amount CONSTANT bigint := 2 ^ 53 / most_lines;
  moment CONSTANT timestamptz := clock_timestamp();
  one_bucket CONSTANT smallint := CASE WHEN cardinality(buckets) = 1 THEN buckets[1] END;
  one_base CONSTANT uuid := CASE WHEN cardinality(bases) = 1 THEN bases[1] END;
  one_kind CONSTANT smallint := CASE WHEN cardinality(kinds) = 1 THEN kinds[1] END;
  one_amount CONSTANT bigint := CASE WHEN cardinality(amounts) = 1 THEN amounts[1] END;
  one_allowance CONSTANT bigint := CASE WHEN cardinality(allowances) = 1 THEN allowances[1] END;
  answer text;
BEGIN
  IF cardinality(ids) > most_lines THEN RETURN '[0]'; END IF;
  WITH line AS MATERIALIZED (
    SELECT u.ord, u.bucket, u.account, u.kind, u.amount, u.allowance,
      (sum(CASE WHEN u.kind = 2 THEN 0 ELSE u.amount END::float8) OVER w)::bigint AS credits,
      (sum(CASE WHEN u.kind = 2 THEN u.amount ELSE 0 END::float8) OVER w)::bigint AS debits,
      min(u.allowance) OVER w AS least_allowance, count(u.allowance) OVER w AS allowances,
      row_number() OVER w AS nth, lead(u.ord) OVER w IS NULL AS last
    FROM (
      SELECT i AS ord, coalesce(one_bucket, buckets[i]) AS bucket, coalesce(one_base, bases[i]) AS account,
        coalesce(one_kind, kinds[i]) AS kind, coalesce(one_amount, amounts[i]) AS amount,
        coalesce(one_allowance, allowances[i]) AS allowance
      FROM generate_series(1, cardinality(ids)) AS i
      WHERE coalesce(one_kind, kinds[i]) IN (1, 2, 12, 13) AND coalesce(one_amount, amounts[i]) BETWEEN 1 AND most_amount
        AND coalesce(one_allowance, allowances[i], 0) BETWEEN 0 AND largest AND ids[i] IS NOT NULL
      OFFSET 0
    ) u
    WINDOW w AS (PARTITION BY u.bucket, u.account ORDER BY u.ord ROWS UNBOUNDED PRECEDING)
  ), changed AS (
    UPDATE balance b
    SET credited = b.credited + l.credits, debited = b.debited + l.debits,
      allowance = coalesce(l.allowance, b.allowance), seq = b.seq + l.nth,
      moved_at = greatest(b.moved_at, moment)
    FROM (SELECT l.* FROM line l WHERE l.last) l
    WHERE b.bucket = l.bucket AND b.account = l.account
      AND can_give(b.credited, b.debited, b.held, b.allowance, b.pinned, b.refilled_at, l.least_allowance, NULL,
        NULL) >= l.debits
      AND l.allowances IN (0, l.nth)
      AND NOT (b.granted OR b.pinned OR b.walled) AND b.refilled_at IS NULL AND b.due_at > moment
      AND greatest(b.credited + l.credits + coalesce(l.allowance, b.allowance),
        b.debited + l.debits + b.held) <= largest
    RETURNING b.bucket, b.account, b.credited - l.credits AS credited, b.debited - l.debits AS debited,
      b.held, b.allowance, b.seq - l.nth AS seq, b.moved_at,
      concat_ws(',', l.ord, l.nth, b.seq, b.credited, b.debited, b.held,
        CASE WHEN b.moved_at = moment THEN 0 ELSE micros(b.moved_at) - micros(moment) END) AS told
  ), done AS MATERIALIZED (
    SELECT l.ord, l.bucket, l.account, l.kind, l.amount,
      c.credited + l.credits AS credited, c.debited + l.debits AS debited,
      c.held, coalesce(l.allowance, c.allowance) AS allowance, c.seq + l.nth AS seq,
      c.moved_at AS at
    -- As in apply_plain: a full join, because that is never a nested loop.
    FROM line l FULL JOIN changed c ON c.bucket = l.bucket AND c.account = l.account
    WHERE coalesce(c.seq, -1) >= 0
  ), remembered AS (
    INSERT INTO operation (bucket, owner, id, line, kind, account, amount, seq, at)
    SELECT d.bucket, coalesce(owners[d.ord], d.account), ids[d.ord], 0, d.kind, d.account, d.amount, d.seq, d.at
    FROM done d
  ), moved AS (
    INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited,
      held, allowance, operation_id)
    SELECT d.bucket, d.kind, d.account, d.seq, d.at,
      CASE WHEN d.kind = 2 THEN 0 ELSE d.amount END, CASE WHEN d.kind = 2 THEN d.amount ELSE 0 END,
      0, d.credited, d.debited, d.held, d.allowance, coalesce(operation_ids[d.ord], ids[d.ord]::text)
    FROM done d
  )
  SELECT string_agg(c.told, ',')
  INTO answer
  FROM changed c;
  RETURN concat('[', micros(moment), ',' || answer, ']');
END
$$;
