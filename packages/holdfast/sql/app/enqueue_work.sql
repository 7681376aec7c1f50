-- Adds work in the caller's transaction, the first one first. Of a unique key that is already there
-- (pending or claimed, in the same queue and scope) the existing row is told, and nothing is added. If
-- another transaction is just adding it, that one is waited for. Keys are inserted in order, so that two
-- callers cannot deadlock.
--
-- While migration 0009 builds its index beside the old one, both are there. ON CONFLICT names neither, so
-- that every unique index is asked: one that is not named would raise an error where two add the same key.
--
-- With while_running = 'run-after' the newest one that comes counts: a job of the key that has not begun takes its
-- payload; one that has begun keeps it, to be run once more afterwards (see migration 0009). A job that ends
-- meanwhile is locked and waited for, and if it is gone then, the new one is added.
-- items: [{id, queue, scope, payload, priority, unique_key, delay_ms, run_at, max_attempts, while_running}], answer:
-- [[id, added, 'replaced' | 'after' | null]] in that order.
CREATE OR REPLACE FUNCTION :"schema".enqueue_work(items jsonb, channel text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  added uuid[] := '{}';
  more uuid[];
  answer text;
  complete boolean;
  wide boolean := false;
  follows jsonb := '{}';
  item record;
  begun boolean;
BEGIN
  LOOP
    WITH new AS (
      INSERT INTO work (bucket, id, queue, scope, payload, priority, run_at, enqueued_at, unique_key,
                        max_attempts)
      SELECT bucket_of(g.scope), g.id, g.queue, g.scope, o.item -> 'payload', coalesce(g.priority, 0),
             -- A microsecond apart, so that they keep their order.
             coalesce(g.run_at, moment + coalesce(g.delay_ms, 0) * interval '1 millisecond')
               + (o.at - 1) * interval '1 microsecond',
             moment, g.unique_key, coalesce(g.max_attempts, 5)
      FROM jsonb_array_elements(items) WITH ORDINALITY AS o(item, at)
      CROSS JOIN LATERAL jsonb_to_record(o.item) AS g(
        id uuid, queue text, scope text, priority integer, unique_key text,
        delay_ms bigint, run_at timestamptz, max_attempts integer)
      WHERE g.id <> ALL (added)
      ORDER BY g.unique_key, g.scope, o.at
      ON CONFLICT DO NOTHING
      RETURNING id
    )
    SELECT coalesce(array_agg(n.id), '{}') INTO more FROM new n;
    added := added || more;
    FOR item IN
      SELECT g.*, o.item -> 'payload' AS payload
      FROM jsonb_array_elements(items) WITH ORDINALITY AS o(item, at)
      CROSS JOIN LATERAL jsonb_to_record(o.item) AS g(
        id uuid, queue text, scope text, priority integer, unique_key text, delay_ms bigint,
        run_at timestamptz, max_attempts integer, while_running text)
      WHERE g.while_running = 'run-after' AND g.id <> ALL (added) AND NOT follows ? g.id::text
      ORDER BY g.unique_key, g.scope, o.at
    LOOP
      UPDATE work w
      SET payload = CASE WHEN w.status = 'pending' AND w.attempts = 0 THEN item.payload ELSE w.payload END,
          again = CASE WHEN w.status = 'pending' AND w.attempts = 0 THEN NULL ELSE jsonb_build_object(
            'payload', item.payload, 'priority', coalesce(item.priority, 0),
            'run_at', coalesce(item.run_at, moment + coalesce(item.delay_ms, 0) * interval '1 millisecond'),
            'max_attempts', coalesce(item.max_attempts, 5), 'channel', channel) END
      WHERE w.bucket = bucket_of(item.scope) AND w.queue = item.queue AND w.scope = item.scope
        AND w.unique_key = item.unique_key AND w.status IN ('pending', 'claimed')
      RETURNING w.status = 'claimed' OR w.attempts > 0 INTO begun;
      IF FOUND THEN
        follows := follows || jsonb_build_object(item.id, CASE WHEN begun THEN 'after' ELSE 'replaced' END);
      END IF;
    END LOOP;
    -- A statement of its own: it sees what others have committed.
    SELECT jsonb_agg(jsonb_build_array(coalesce(mine, known), mine IS NOT NULL, follows -> g.id::text)
                     ORDER BY o.at)::text,
           bool_and(coalesce(mine, known) IS NOT NULL
             -- Found now, but not when it was to be told: once more.
             AND (mine IS NOT NULL OR g.while_running IS DISTINCT FROM 'run-after' OR follows ? g.id::text OR wide))
    INTO answer, complete
    FROM jsonb_array_elements(items) WITH ORDINALITY AS o(item, at)
    CROSS JOIN LATERAL jsonb_to_record(o.item) AS g(id uuid, queue text, scope text, unique_key text, while_running text)
    CROSS JOIN LATERAL (
      SELECT CASE WHEN g.id = ANY (added) THEN g.id END AS mine,
             CASE WHEN g.id <> ALL (added) THEN coalesce(
               (SELECT w.id FROM work w
                WHERE w.bucket = bucket_of(g.scope) AND w.queue = g.queue AND w.scope = g.scope
                  AND w.unique_key = g.unique_key AND w.status IN ('pending', 'claimed')),
               (SELECT w.id FROM work w WHERE w.bucket = bucket_of(g.scope) AND w.id = g.id),
               CASE WHEN wide THEN (
                 SELECT w.id FROM work w
                 WHERE w.bucket = bucket_of(g.scope) AND w.queue = g.queue
                   AND w.unique_key = g.unique_key AND w.status IN ('pending', 'claimed') LIMIT 1) END) END AS known
    ) found;
    -- Where it was neither added nor found, it was finished in between: once more. At REPEATABLE READ
    -- a row that cannot be seen has made the INSERT fail.
    EXIT WHEN complete;
    -- Or the old index is still there, and the row is one of another scope: told as it was until then.
    wide := EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = to_regclass('work_unique') AND i.indisready);
  END LOOP;
  IF channel IS NOT NULL AND cardinality(added) > 0 THEN
    PERFORM pg_notify(channel, '');
  END IF;
  -- That it was there before is only certain once the standby has it too.
  IF cardinality(added) = 0 AND follows = '{}' THEN PERFORM wait_for_standby(); END IF;
  RETURN answer;
END
$$;
