-- Applies what is plain of many operations of one line each, as one set: credits, debits, holds,
-- openings and returns that are new, on open accounts that have enough for all that is asked of them
-- here. The rest is left out of the answer, with nothing changed, and is to be sent to apply(), in
-- another transaction, which would have decided the same way about every line.
--
-- One statement adds to all accounts in the order of the primary key, and takes no lock on one that
-- is too short already. What each line left behind is counted back from there. Sums are made as
-- float8, exact up to 2^53, because sums of bigint are numeric and slow: hence the limits of amount
-- and lines.
--
-- An owner that is null is the account's own, and an operation id that is null is the id as text.
--
-- Of two calls with the same new operation id at the same moment one gets PostgreSQL's 23505, and
-- finds it known when it tries again.
--
-- answer one line per element that was applied, as in apply()
CREATE OR REPLACE FUNCTION :"schema".apply_plain(
  buckets smallint[],
  bases uuid[],
  owners uuid[],
  ids uuid[],
  operation_ids text[],
  kinds smallint[],
  amounts bigint[],
  allowances bigint[],
  flags integer[],
  notes text[],
  units text[],
  zones text[],
  ttls_ms bigint[],
  refs text[]
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
  moment_text CONSTANT text := micros(moment);
  answer text;
BEGIN
  IF cardinality(ids) > most_lines THEN RETURN ''; END IF;
  WITH line AS MATERIALIZED (
    SELECT u.*,
      (sum(CASE WHEN u.kind IN (2, 3) THEN 0 ELSE u.amount END::float8) OVER w)::bigint AS credits,
      (sum(CASE WHEN u.kind = 2 THEN u.amount ELSE 0 END::float8) OVER w)::bigint AS debits,
      (sum(CASE WHEN u.kind = 3 THEN u.amount ELSE 0 END::float8) OVER w)::bigint AS holds,
      min(u.allowance) OVER w AS least_allowance, count(u.allowance) OVER w AS allowances,
      min(u.lasts) OVER w AS least_lasts,
      row_number() OVER w AS nth, lead(u.ord) OVER w IS NULL AS last
    FROM (
      SELECT u.ord, u.bucket, coalesce(u.owner, u.base) AS owner, u.id,
        coalesce(u.operation, u.id::text) AS operation, u.kind, u.amount, u.allowance, u.note,
        CASE WHEN u.unit IS NULL THEN u.base
          ELSE window_account(u.base, window_start(u.unit, u.zone, moment)) END AS account,
        CASE WHEN u.kind = 3 THEN u.ref::uuid END AS hold,
        CASE WHEN u.kind = 3 THEN u.ttl * interval '1 millisecond' END AS lasts
      FROM unnest(buckets, bases, owners, ids, operation_ids, kinds, amounts, allowances, flags, notes,
          units, zones, ttls_ms, refs)
        WITH ORDINALITY AS u(bucket, base, owner, id, operation, kind, amount, allowance, flag, note,
          unit, zone, ttl, ref, ord)
      WHERE u.kind IN (1, 2, 3, 12, 13) AND u.flag & 1153 = 0 AND u.amount BETWEEN 1 AND most_amount
        AND coalesce(u.allowance, 0) BETWEEN 0 AND largest AND u.id IS NOT NULL
        AND (u.kind <> 3 OR u.ref IS NOT NULL AND u.ttl BETWEEN 1 AND 100 * 366 * 86400000::bigint)
        AND NOT EXISTS (
          SELECT FROM operation o
          WHERE o.bucket = u.bucket AND o.owner = coalesce(u.owner, u.base) AND o.id = u.id
        )
      OFFSET 0
    ) u
    WINDOW w AS (PARTITION BY u.bucket, u.account ORDER BY u.ord ROWS UNBOUNDED PRECEDING)
  ), changed AS (
    UPDATE balance b
    SET credited = b.credited + l.credits, debited = b.debited + l.debits, held = b.held + l.holds,
      allowance = coalesce(l.allowance, b.allowance), seq = b.seq + l.nth,
      moved_at = greatest(b.moved_at, moment),
      -- May have waited for the row since, so that this can be too early, but never too late.
      due_at = least(b.due_at, moment + l.least_lasts)
    FROM (SELECT l.* FROM line l WHERE l.last) l
    WHERE b.bucket = l.bucket AND b.account = l.account
      AND can_give(b.credited, b.debited, b.held, b.allowance, b.pinned, b.refilled_at, l.least_allowance, NULL,
        NULL) >= l.debits + l.holds
      AND l.allowances IN (0, l.nth)
      AND NOT (b.granted OR b.pinned OR b.walled) AND b.refilled_at IS NULL AND b.due_at > moment
      AND greatest(b.credited + l.credits + coalesce(l.allowance, b.allowance),
        b.debited + l.debits + b.held + l.holds) <= largest
    RETURNING b.bucket, b.account, b.credited - l.credits AS credited, b.debited - l.debits AS debited,
      b.held - l.holds AS held, b.allowance, b.seq - l.nth AS seq, b.moved_at,
      -- A hold begins when the row is ours.
      CASE WHEN l.least_lasts IS NOT NULL THEN clock_timestamp() END AS begins
  ), done AS MATERIALIZED (
    SELECT l.ord, l.bucket, l.account, l.owner, l.id, l.operation, l.kind, l.amount, l.note, l.hold,
      c.begins + l.lasts AS until, c.credited + l.credits AS credited, c.debited + l.debits AS debited,
      c.held + l.holds AS held, coalesce(l.allowance, c.allowance) AS allowance, c.seq + l.nth AS seq,
      c.moved_at AS at
    -- A full join, because that is never a nested loop; what was not changed is left out after it, by
    -- a condition that the planner cannot use to make it another join.
    FROM line l FULL JOIN changed c ON c.bucket = l.bucket AND c.account = l.account
    WHERE coalesce(c.seq, -1) >= 0
  ), remembered AS (
    INSERT INTO operation (bucket, owner, id, line, kind, account, amount, seq, at)
    SELECT d.bucket, d.owner, d.id, 0, d.kind, d.account, d.amount, d.seq, d.at
    FROM done d
  ), moved AS (
    INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited,
      held, allowance, operation_id, hold_id, note)
    SELECT d.bucket, d.kind, d.account, d.seq, d.at,
      CASE WHEN d.kind IN (2, 3) THEN 0 ELSE d.amount END, CASE WHEN d.kind = 2 THEN d.amount ELSE 0 END,
      CASE WHEN d.kind = 3 THEN d.amount ELSE 0 END, d.credited, d.debited, d.held, d.allowance,
      d.operation, d.hold, d.note::jsonb
    FROM done d
  ), put_aside AS (
    INSERT INTO hold (bucket, id, account, amount, expires_at, made_seq, operation_id)
    SELECT d.bucket, d.hold, d.account, d.amount, d.until, d.seq, d.operation
    FROM done d
    WHERE d.kind = 3
  )
  SELECT string_agg(concat_ws(',', d.ord, 0, d.seq, d.credited, d.debited, d.held, d.allowance,
    CASE WHEN d.at = moment THEN moment_text ELSE micros(d.at)::text END, micros(d.until)), E'\n')
  INTO answer
  FROM done d;
  RETURN coalesce(answer, '');
END
$$;
