-- What upkeep is about to do, as JSON, on the server's clock: the months whose movements are older
-- than so many whole months, and the moment before which operation ids are forgotten: that of the
-- horizon, or that of the months, since an id without its movement has no answer to repeat.
-- Nothing that somebody who follows has not read is old enough; "held_by" says who that is, if it is why
-- a month stays. "ahead" is how many months to come have their partition.
CREATE OR REPLACE FUNCTION :"schema".upkeep_plan(keep_months integer, horizon_ms bigint) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
DECLARE
  this_month CONSTANT timestamp := date_trunc('month', now() AT TIME ZONE 'UTC');
  wanted CONSTANT timestamptz := (this_month - make_interval(months => keep_months)) AT TIME ZONE 'UTC';
  boundary timestamptz := wanted;
  reader record;
  planned json;
BEGIN
  SELECT f.name, date_trunc('month', f.read_up_to AT TIME ZONE 'UTC') AT TIME ZONE 'UTC' AS read_up_to INTO reader
  FROM follower f ORDER BY f.read_up_to LIMIT 1;
  IF reader.read_up_to < wanted THEN boundary := reader.read_up_to; END IF;
  SELECT json_build_object(
    'boundary', boundary::text,
    'held_by', CASE WHEN boundary < wanted AND bool_or(p.first >= boundary AT TIME ZONE 'UTC'
      AND p.first < wanted AT TIME ZONE 'UTC') THEN reader.name END,
    'forget', greatest(boundary, now() - horizon_ms * interval '1 millisecond')::text,
    'months', coalesce(json_agg(to_char(p.first, 'YYYY-MM-DD') ORDER BY p.first)
      FILTER (WHERE p.first < boundary AT TIME ZONE 'UTC'), '[]'),
    'ahead', count(*) FILTER (WHERE p.first > this_month))
  INTO planned
  FROM (
    SELECT to_date(substr(c.relname, 10), 'YYYYMM')::timestamp AS first
    FROM pg_inherits i
    JOIN pg_class c ON c.oid = i.inhrelid
    WHERE i.inhparent = 'movement'::regclass AND c.relname ~ '^movement_[0-9]{6}$'
  ) p;
  RETURN planned;
END;
$$;
