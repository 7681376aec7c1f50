-- Uses up an amount of each of several keys in the calendar window of this moment: the whole amount, or nothing. Keys come
-- in the order of the primary key, each once, and are locked in that order, so that two calls do not deadlock.
--
-- The check and the change are one UPDATE: whoever waited for a row is checked again on what it is by then. A key that is
-- used up is neither locked nor written.
--
-- "limits" may have one element for all. "look" is how many old rows are looked at for each new one (forget_beside).
--
-- answer [end of the window, then of each key its number and what is used by now; the number is negative if the amount
-- was refused]. What is missing in it was not decided, because somebody else was the first to use that key at the
-- same moment: it is to be asked again.
CREATE OR REPLACE FUNCTION :"schema".take_in_window(
  buckets smallint[], keys uuid[], amounts bigint[], limits bigint[], unit text, zone text, look integer
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
  moment timestamptz := clock_timestamp();
  ends CONSTANT timestamptz := window_end(unit, zone, moment);
  -- A row may be in the window after this one, because somebody with a later moment was faster. What is later still was
  -- written before the clock was set back, and ends with this window.
  last CONSTANT timestamptz := ends + 1.1 * ('1 ' || unit)::interval;
  granted text;
  others text;
  decided bigint[];
  fresh bigint[];
BEGIN
  WITH changed AS (
    UPDATE rate_limit r
    SET used = CASE WHEN r.until > moment THEN r.used ELSE 0 END + u.amount,
      until = CASE WHEN r.until > moment AND r.until <= last THEN r.until ELSE ends END
    FROM unnest(buckets, keys, amounts, limits) WITH ORDINALITY AS u(bucket, key, amount, most, ord)
    WHERE r.bucket = u.bucket AND r.key = u.key
      AND CASE WHEN r.until > moment THEN r.used ELSE 0 END <= coalesce(u.most, limits[1]) - u.amount
    RETURNING u.ord, r.used
  )
  SELECT string_agg(concat(',', c.ord, ',', c.used), ''), array_agg(c.ord) INTO granted, decided
  FROM changed c;
  IF cardinality(decided) = cardinality(keys) THEN
    RETURN concat('[', micros(ends), granted, ']');
  END IF;

  SELECT string_agg(concat(',', -u.ord, ',', CASE WHEN r.until > moment THEN r.used ELSE 0 END), '')
      FILTER (WHERE r.until IS NOT NULL OR u.amount > coalesce(u.most, limits[1])),
    array_agg(u.ord) FILTER (WHERE r.until IS NULL AND u.amount <= coalesce(u.most, limits[1]))
  INTO others, fresh
  FROM unnest(buckets, keys, amounts, limits) WITH ORDINALITY AS u(bucket, key, amount, most, ord)
  LEFT JOIN rate_limit r ON r.bucket = u.bucket AND r.key = u.key
  WHERE decided IS NULL OR u.ord <> ALL (decided);
  granted := concat(granted, others);

  IF fresh IS NOT NULL THEN
    -- There may have been a row that was deleted when its window had ended: then this is a later moment than that.
    moment := clock_timestamp();
    WITH added AS (
      INSERT INTO rate_limit AS r (bucket, key, used, until)
      SELECT u.bucket, u.key, u.amount, window_end(unit, zone, moment)
      FROM unnest(buckets, keys, amounts) WITH ORDINALITY AS u(bucket, key, amount, ord)
      WHERE u.ord = ANY (fresh)
      ORDER BY u.ord
      ON CONFLICT DO NOTHING
      RETURNING r.bucket, r.key, r.used
    )
    SELECT string_agg(concat(',', u.ord, ',', a.used), '') INTO others
    FROM added a
    JOIN unnest(buckets, keys) WITH ORDINALITY AS u(bucket, key, ord) ON u.bucket = a.bucket AND u.key = a.key;
    granted := concat(granted, others);
    IF look > 0 THEN PERFORM forget_beside(buckets[f.ord], keys[f.ord], look) FROM unnest(fresh) AS f(ord); END IF;
  END IF;
  RETURN concat('[', micros(ends), granted, ']');
END
$$;
