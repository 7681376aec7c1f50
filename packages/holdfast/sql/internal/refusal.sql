-- The answers to one operation that the look without locks showed to be short, line by line: the
-- lines that decided it ("denied"), and those that would not fit either.
CREATE OR REPLACE FUNCTION :"schema".refusal(
  lines integer[], buckets smallint[], accounts uuid[], denied boolean[], kinds smallint[],
  amounts bigint[], allowances bigint[], flags integer[], units text[], zones text[],
  every_us bigint[], moment timestamptz
) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_column
DECLARE
  answers text[];
BEGIN
  SELECT array_agg(concat_ws(',', y.line, CASE WHEN y.short THEN 2 ELSE 9 END, y.seq, y.credited,
    y.debited, y.held, y.allowed, y.at, CASE
      WHEN y.short AND y.every IS NOT NULL AND y.amount <= y.allowance THEN
        micros(y.refilled_at + (y.amount - y.credited + y.debited + y.held) * y.every
          * interval '1 microsecond')
      WHEN y.short AND y.every IS NULL AND y.amount <= y.allowed THEN
        retry_at(y.bucket, y.account, y.amount - y.allowed - y.credited + y.debited + y.held,
          y.rolling, y.unit, y.zone, moment) END)
    ORDER BY y.ord)
  INTO answers
  FROM (
    SELECT x.*, x.denied OR x.kind IN (2, 3) AND x.flag & 1 = 0 AND x.due_at > moment
      AND x.credited - x.debited - x.held + x.allowed < x.amount AS short
    FROM (
      SELECT u.*, coalesce(b.seq, 0) AS seq, coalesce(b.credited, 0) AS credited,
        coalesce(b.debited, 0) AS debited, coalesce(b.held, 0) AS held,
        coalesce(micros(b.moved_at), 0) AS at, u.flag & 4 <> 0 AS rolling,
        coalesce(b.due_at, 'infinity') AS due_at, b.refilled_at,
        CASE
          -- What a rate limit has been refilled with is not in the balance. One that was never used
          -- is full: least() passes over the null.
          WHEN u.every IS NOT NULL THEN least(
            CASE WHEN b.pinned THEN b.allowance ELSE coalesce(u.allowance, b.allowance, 0) END
              - coalesce(b.credited - b.debited - b.held, 0),
            floor(extract(epoch FROM moment - b.refilled_at) * 1000000 / u.every)::bigint)
          WHEN b.pinned THEN b.allowance
          ELSE coalesce(u.allowance, b.allowance, 0)
        END AS allowed
      FROM unnest(lines, buckets, accounts, denied, kinds, amounts, allowances, flags, units, zones,
          every_us)
        WITH ORDINALITY AS u(line, bucket, account, denied, kind, amount, allowance, flag, unit,
          zone, every, ord)
      LEFT JOIN balance b ON b.bucket = u.bucket AND b.account = u.account
    ) x
  ) y;
  RETURN answers;
END;
$$;
