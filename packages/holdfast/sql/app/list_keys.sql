-- The keys of a book in their order, after one of them, each with what it stands at in every scope it has: as a JSON array.
-- Of calendar windows the last that has begun. Goes from key to key, however many windows each has.
CREATE OR REPLACE FUNCTION :"schema".list_keys(book text, after_key text, most integer) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  -- The functions of an application are called by whoever has its role.
  room CONSTANT integer := greatest(1, least(coalesce(most, 1), 1001));
  page json[] := '{}';
  listed integer := 0;
  next text := after_key;
  s record;
  x record;
BEGIN
  WHILE listed < room LOOP
    SELECT a.key INTO next
    FROM account a
    WHERE a.book = book AND (next IS NULL OR a.key > next)
    ORDER BY a.key
    LIMIT 1;
    EXIT WHEN next IS NULL;
    listed := listed + 1;
    FOR s IN
      SELECT DISTINCT a.scope, a.bucket FROM account a WHERE a.book = book AND a.key = next ORDER BY a.scope
    LOOP
      CONTINUE WHEN away(s.bucket);
      SELECT a.window_start, a.window_end, b.* INTO x
      FROM account a
      JOIN balance b ON b.bucket = a.bucket AND b.account = a.id
      WHERE a.book = book AND a.key = next AND a.scope = s.scope AND a.bucket = s.bucket
        AND a.window_start <= moment
      ORDER BY a.window_start DESC
      LIMIT 1;
      CONTINUE WHEN NOT FOUND;
      page := page || json_build_object('key', next, 'scope', s.scope, 'seq', x.seq::text,
        'at', micros(x.moved_at)::text, 'credited', x.credited::text, 'debited', x.debited::text,
        'held', x.held::text, 'allowance', x.allowance::text, 'start', micros(x.window_start)::text,
        'end', micros(x.window_end)::text, 'due', x.due_at <= moment);
    END LOOP;
  END LOOP;
  RETURN json_build_object('keys', array_to_json(page), 'next', CASE WHEN listed = room THEN next END);
END
$$;
