-- Uses up an amount of each of several rates: the whole amount, or nothing. Amounts and limits are times here, in
-- microseconds: what is used comes back as time passes, one of the caller's units in "units", and the most that may be used
-- at once is the time in which a whole burst comes back (GCRA). Otherwise like take_in_window(): "units" may have one
-- element for all as well.
--
-- A refused row that says something else than rate_owed() makes of it is written anew, so that what is told of it comes
-- true: the first time after the limit was changed, or the clock set back.
--
-- answer [this moment, then of each key its number and what is used by now, in microseconds; the number is negative if
-- the amount was refused]. What is missing in it is to be asked again.
CREATE OR REPLACE FUNCTION :"schema".take_at_rate(
  buckets smallint[], keys uuid[], amounts bigint[], limits bigint[], units bigint[], look integer
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
  untrue bigint[];
BEGIN
  WITH changed AS (
    UPDATE rate_limit r
    SET used = now_us + rate_owed(r.used, r.unit, now_us, u.unit, u.most) + u.amount, unit = u.unit,
      until = moment + (rate_owed(r.used, r.unit, now_us, u.unit, u.most) + u.amount) * interval '1 microsecond'
    FROM (
      SELECT bucket, key, amount, coalesce(most, limits[1]) AS most, coalesce(unit, units[1]) AS unit, ord
      FROM unnest(buckets, keys, amounts, limits, units) WITH ORDINALITY AS x(bucket, key, amount, most, unit, ord)
    ) u
    WHERE r.bucket = u.bucket AND r.key = u.key
      AND rate_owed(r.used, r.unit, now_us, u.unit, u.most) <= u.most - u.amount
    RETURNING u.ord, r.used - now_us AS used
  )
  SELECT string_agg(concat(',', c.ord, ',', c.used), ''), array_agg(c.ord) INTO granted, decided
  FROM changed c;
  IF cardinality(decided) = cardinality(keys) THEN
    RETURN concat('[', now_us, granted, ']');
  END IF;

  SELECT string_agg(concat(',', -s.ord, ',', s.owed), '') FILTER (WHERE NOT s.is_fresh AND NOT s.is_untrue),
    array_agg(s.ord) FILTER (WHERE s.is_fresh), array_agg(s.ord) FILTER (WHERE s.is_untrue)
  INTO others, fresh, untrue
  FROM (
    SELECT u.ord, r.key IS NULL AND u.amount <= u.most AS is_fresh,
      coalesce(r.used > now_us AND (r.unit <> u.unit OR r.used - now_us > u.most), false) AS is_untrue,
      CASE WHEN r.key IS NULL THEN 0 ELSE rate_owed(r.used, r.unit, now_us, u.unit, u.most) END AS owed
    FROM (
      SELECT bucket, key, amount, coalesce(most, limits[1]) AS most, coalesce(unit, units[1]) AS unit, ord
      FROM unnest(buckets, keys, amounts, limits, units) WITH ORDINALITY AS x(bucket, key, amount, most, unit, ord)
    ) u
    LEFT JOIN rate_limit r ON r.bucket = u.bucket AND r.key = u.key
    WHERE decided IS NULL OR u.ord <> ALL (decided)
  ) s;
  granted := concat(granted, others);

  IF untrue IS NOT NULL THEN
    WITH mended AS (
      UPDATE rate_limit r
      SET used = now_us + rate_owed(r.used, r.unit, now_us, u.unit, u.most), unit = u.unit,
        until = moment + rate_owed(r.used, r.unit, now_us, u.unit, u.most) * interval '1 microsecond'
      FROM (
        SELECT bucket, key, coalesce(most, limits[1]) AS most, coalesce(unit, units[1]) AS unit, ord
        FROM unnest(buckets, keys, limits, units) WITH ORDINALITY AS x(bucket, key, most, unit, ord)
      ) u
      WHERE r.bucket = u.bucket AND r.key = u.key AND u.ord = ANY (untrue) AND r.used > now_us
      RETURNING u.ord, r.used - now_us AS used
    )
    SELECT string_agg(concat(',', -m.ord, ',', m.used), '') INTO others FROM mended m;
    granted := concat(granted, others);
  END IF;

  IF fresh IS NOT NULL THEN
    WITH added AS (
      INSERT INTO rate_limit AS r (bucket, key, used, unit, until)
      SELECT u.bucket, u.key, now_us + u.amount, coalesce(u.unit, units[1]), moment + u.amount * interval '1 microsecond'
      FROM unnest(buckets, keys, amounts, units) WITH ORDINALITY AS u(bucket, key, amount, unit, ord)
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
