-- Movements of a key, newest first, as a JSON array; of a book with calendar windows, window after
-- window. A page goes on below the window and the number that the page before ended with.
CREATE OR REPLACE FUNCTION :"schema".read_history(
  bucket smallint, book text, key text, scope text, below_window timestamptz, below_seq bigint,
  most integer
) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  page json[] := '{}';
  -- The functions of an application are called by whoever has its role.
  room CONSTANT integer := greatest(1, least(coalesce(most, 1), 1001));
  a record;
  m record;
BEGIN
  FOR a IN
    SELECT x.id, x.window_start, x.window_end
    FROM account x
    WHERE x.book = book AND x.key = key AND x.scope = scope AND x.bucket = bucket
      -- A window to come has nothing but its limit.
      AND x.window_start <= coalesce(below_window, clock_timestamp())
    ORDER BY x.window_start DESC
  LOOP
    FOR m IN
      SELECT x.*, movement_kind(x.kind) AS word
      FROM movement x
      WHERE x.bucket = bucket AND x.account = a.id
        AND x.seq < CASE WHEN a.window_start = below_window THEN below_seq
          ELSE 9223372036854775807 END
      ORDER BY x.seq DESC
      LIMIT room - cardinality(page)
    LOOP
      page := page || json_build_object('seq', m.seq::text, 'kind', m.word, 'at', micros(m.at)::text,
        'credit', m.credit::text, 'debit', m.debit::text, 'hold', m.hold::text,
        'credited', m.credited::text, 'debited', m.debited::text, 'held', m.held::text,
        'allowance', m.allowance::text, 'operation', m.operation_id,
        'holdId', lpad(to_hex(bucket::integer), 3, '0') || '-' || m.hold_id, 'grantId', m.grant_id,
        'note', m.note, 'start', micros(a.window_start)::text, 'end', micros(a.window_end)::text);
    END LOOP;
    EXIT WHEN cardinality(page) >= room;
  END LOOP;
  RETURN array_to_json(page);
END
$$;
