-- Uses up an amount of each of several rates: the whole amount, or nothing. Amounts and limits are times here, in
-- microseconds: what is used comes back as time passes, and the most that may be used at once is the time in which a
-- whole burst comes back (GCRA). Otherwise like take_in_window().
--
-- What is used can be no more than "most": after a limit was lowered, or the clock set back, nothing is left and the
-- rate comes back from there.
--
-- answer [this moment, then of each key its number and what is used by now, in microseconds; the number is negative if
-- the amount was refused]. What is missing in it is to be asked again.
CREATE OR REPLACE FUNCTION :"schema".take_at_rate(
  buckets smallint[], keys uuid[], amounts bigint[], limits bigint[], look integer
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET enable_hashjoin = off
SET enable_mergejoin = off
AS $$
#variable_conflict use_column
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  now_us CONSTANT bigint := micros(moment);
  granted text;
  others text;
  decided bigint[];
  fresh bigint[];
BEGIN
  WITH changed AS (
    UPDATE rate_limit r
    SET used = now_us + greatest(0, least(r.used - now_us, coalesce(u.most, limits[1]))) + u.amount,
      until = moment
        + (greatest(0, least(r.used - now_us, coalesce(u.most, limits[1]))) + u.amount) * interval '1 microsecond'
    FROM unnest(buckets, keys, amounts, limits) WITH ORDINALITY AS u(bucket, key, amount, most, ord)
    WHERE r.bucket = u.bucket AND r.key = u.key
      AND greatest(0, least(r.used - now_us, coalesce(u.most, limits[1]))) <= coalesce(u.most, limits[1]) - u.amount
    RETURNING u.ord, r.used - now_us AS used
  )
  SELECT string_agg(concat(',', c.ord, ',', c.used), ''), array_agg(c.ord) INTO granted, decided
  FROM changed c;
  IF cardinality(decided) = cardinality(keys) THEN
    RETURN concat('[', now_us, granted, ']');
  END IF;

  SELECT string_agg(concat(',', -u.ord, ',',
      CASE WHEN r.until IS NULL THEN 0
        ELSE greatest(0, least(r.used - now_us, coalesce(u.most, limits[1]))) END), '')
      FILTER (WHERE r.until IS NOT NULL OR u.amount > coalesce(u.most, limits[1])),
    array_agg(u.ord) FILTER (WHERE r.until IS NULL AND u.amount <= coalesce(u.most, limits[1]))
  INTO others, fresh
  FROM unnest(buckets, keys, amounts, limits) WITH ORDINALITY AS u(bucket, key, amount, most, ord)
  LEFT JOIN rate_limit r ON r.bucket = u.bucket AND r.key = u.key
  WHERE decided IS NULL OR u.ord <> ALL (decided);
  granted := concat(granted, others);

  IF fresh IS NOT NULL THEN
    WITH added AS (
      INSERT INTO rate_limit AS r (bucket, key, used, until)
      SELECT u.bucket, u.key, now_us + u.amount, moment + u.amount * interval '1 microsecond'
      FROM unnest(buckets, keys, amounts) WITH ORDINALITY AS u(bucket, key, amount, ord)
      WHERE u.ord = ANY (fresh)
      ORDER BY u.ord
      ON CONFLICT DO NOTHING
      RETURNING r.bucket, r.key, r.used
    )
    SELECT string_agg(concat(',', u.ord, ',', a.used - now_us), '') INTO others
    FROM added a
    JOIN unnest(buckets, keys) WITH ORDINALITY AS u(bucket, key, ord) ON u.bucket = a.bucket AND u.key = a.key;
    granted := concat(granted, others);
    IF look > 0 THEN PERFORM forget_beside(buckets[f.ord], keys[f.ord], look) FROM unnest(fresh) AS f(ord); END IF;
  END IF;
  RETURN concat('[', now_us, granted, ']');
END
$$;
