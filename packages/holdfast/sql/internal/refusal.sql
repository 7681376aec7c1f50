-- The answers to one operation that the look without locks showed to be short by "denied" lines: line by line, all that
-- do not fit. Null if none of those is short any more: this looks at balances later than the look did, and what is told
-- must be what refuses. Or to one whose id is known with another "conflict": then every line says so.
CREATE OR REPLACE FUNCTION :"schema".refusal(
  lines integer[], buckets smallint[], accounts uuid[], bases uuid[], denied boolean[], kinds smallint[],
  amounts bigint[], allowances bigint[], flags integer[], units text[], zones text[],
  every_us bigint[], notes text[], moment timestamptz, conflict text
) RETURNS text[]
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_column
DECLARE
  answers text[];
  stands boolean;
BEGIN
  SELECT bool_or(y.denied AND y.short), array_agg(concat_ws(',', y.line,
    CASE WHEN conflict IS NOT NULL THEN 3 WHEN y.short THEN 2 ELSE 9 END, coalesce(y.seq, 0),
    y.credited, y.debited, y.held,
    -- What a rate limit would be refilled with is not in the balance.
    CASE WHEN y.every IS NULL THEN y.allowed ELSE y.available - y.standing END, coalesce(micros(y.moved_at), 0),
    CASE
      WHEN conflict IS NOT NULL THEN conflict
      WHEN y.short THEN nullif(concat(CASE
        WHEN y.amount > y.allowed THEN NULL
        WHEN y.every IS NOT NULL THEN filled_until(y.refilled_at, y.amount - y.standing, y.every)
        ELSE retry_at(y.bucket, y.account, y.amount - y.available, y.flag & 4 <> 0, y.unit, y.zone, moment)
      END, '/' || nullif(y.apart, 0)), '')
    END) ORDER BY y.ord)
  INTO stands, answers
  FROM (
    SELECT x.*, x.credited - x.debited - x.held AS standing,
      x.kind IN (2, 3, 15) AND x.flag & 1 = 0 AND coalesce(x.due_at > moment, true)
        AND x.available < x.amount AS short
    FROM (
      SELECT u.line, u.bucket, u.account, u.denied, u.kind, least_of(u.amount, u.flag) AS amount, u.flag, u.unit,
        u.zone, u.every, u.ord, b.seq, b.moved_at, b.due_at, b.refilled_at, coalesce(b.credited, 0) AS credited,
        coalesce(b.debited, 0) AS debited, coalesce(b.held, 0) AS held, p.apart,
        limit_of(b.allowance, b.pinned, b.refilled_at, u.allowance, u.every) AS allowed,
        can_give(coalesce(b.credited, 0), coalesce(b.debited, 0), coalesce(b.held, 0), b.allowance, b.pinned,
          b.refilled_at, u.allowance, u.every, moment) - p.apart AS available
      FROM unnest(lines, buckets, accounts, bases, denied, kinds, amounts, allowances, flags, units, zones,
          every_us, notes)
        WITH ORDINALITY AS u(line, bucket, account, base, denied, kind, amount, allowance, flag, unit,
          zone, every, note, ord)
      LEFT JOIN LATERAL standing(u.bucket, u.account, u.base) b ON true
      CROSS JOIN LATERAL (
        SELECT CASE WHEN b.granted THEN set_apart(u.bucket, u.account,
          CASE WHEN u.kind <> 15 THEN u.note::jsonb ->> 'feature' END) ELSE 0 END AS apart
      ) p
    ) x
  ) y;
  RETURN CASE WHEN stands OR conflict IS NOT NULL THEN answers END;
END;
$$;
