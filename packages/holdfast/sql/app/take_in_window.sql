-- Uses up an amount of each of several keys in the calendar window of this moment: the whole amount, or nothing. Keys come
-- in the order of the primary key, each once, and are locked in that order, so that two calls do not deadlock.
--
-- The check and the change are one UPDATE: whoever waited for a row is checked again on what it is by then. A key that is
-- used up is neither locked nor written, unless its row was written before the clock was set back: then it is written to
-- end with this window, so that what is told of it comes true.
--
-- "limits" may have one element for all. "look" is how many old rows are looked at for each new one (forget_beside).
--
-- answer [end of the window, then of each key its number and what is used by now; the number is negative if the amount
-- was refused; then, if there are any, 0 and of each key whose row ends at another moment its number and that moment].
-- What is missing in it was not decided, because somebody else was faster with that key: it is to be asked again.
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
  elsewhen text;
  more text;
  moments text;
  decided bigint[];
  fresh bigint[];
  untrue bigint[];
BEGIN
  WITH changed AS (
    UPDATE rate_limit r
    SET used = CASE WHEN r.until > moment THEN r.used ELSE 0 END + u.amount,
      until = CASE WHEN r.until > moment AND r.until <= last THEN r.until ELSE ends END
    FROM unnest(buckets, keys, amounts, limits) WITH ORDINALITY AS u(bucket, key, amount, most, ord)
    WHERE r.bucket = u.bucket AND r.key = u.key
      AND CASE WHEN r.until > moment THEN r.used ELSE 0 END <= coalesce(u.most, limits[1]) - u.amount
    RETURNING u.ord, r.used, r.until
  )
  SELECT string_agg(concat(',', c.ord, ',', c.used), ''), array_agg(c.ord),
    string_agg(concat(',', c.ord, ',', micros(c.until)), '') FILTER (WHERE c.until <> ends)
  INTO granted, decided, elsewhen
  FROM changed c;
  IF cardinality(decided) = cardinality(keys) AND elsewhen IS NULL THEN
    RETURN concat('[', micros(ends), granted, ']');
  END IF;

  SELECT string_agg(concat(',', -s.ord, ',', s.used), '') FILTER (WHERE NOT s.is_fresh AND NOT s.is_untrue),
    string_agg(concat(',', s.ord, ',', micros(s.until)), '')
      FILTER (WHERE NOT s.is_untrue AND s.until > moment AND s.until <> ends),
    array_agg(s.ord) FILTER (WHERE s.is_fresh), array_agg(s.ord) FILTER (WHERE s.is_untrue)
  INTO more, moments, fresh, untrue
  FROM (
    SELECT u.ord, r.until, CASE WHEN r.until > moment THEN r.used ELSE 0 END AS used,
      r.key IS NULL AND u.amount <= coalesce(u.most, limits[1]) AS is_fresh, coalesce(r.until > last, false) AS is_untrue
    FROM unnest(buckets, keys, amounts, limits) WITH ORDINALITY AS u(bucket, key, amount, most, ord)
    LEFT JOIN rate_limit r ON r.bucket = u.bucket AND r.key = u.key
    WHERE decided IS NULL OR u.ord <> ALL (decided)
  ) s;
  granted := concat(granted, more);
  elsewhen := concat(elsewhen, moments);

  IF untrue IS NOT NULL THEN
    WITH mended AS (
      UPDATE rate_limit r SET until = ends
      FROM unnest(buckets, keys) WITH ORDINALITY AS u(bucket, key, ord)
      WHERE r.bucket = u.bucket AND r.key = u.key AND u.ord = ANY (untrue) AND r.until > last
      RETURNING u.ord, r.used
    )
    SELECT string_agg(concat(',', -m.ord, ',', m.used), '') INTO more FROM mended m;
    granted := concat(granted, more);
  END IF;

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
      RETURNING r.bucket, r.key, r.used, r.until
    )
    SELECT string_agg(concat(',', u.ord, ',', a.used), ''),
      string_agg(concat(',', u.ord, ',', micros(a.until)), '') FILTER (WHERE a.until <> ends)
    INTO more, moments
    FROM added a
    JOIN unnest(buckets, keys) WITH ORDINALITY AS u(bucket, key, ord) ON u.bucket = a.bucket AND u.key = a.key;
    granted := concat(granted, more);
    elsewhen := concat(elsewhen, moments);
    IF look > 0 THEN PERFORM forget_beside(buckets[f.ord], keys[f.ord], look) FROM unnest(fresh) AS f(ord); END IF;
  END IF;
  IF elsewhen <> '' THEN elsewhen := concat(',0', elsewhen); END IF;
  RETURN concat('[', micros(ends), granted, elsewhen, ']');
END
$$;
