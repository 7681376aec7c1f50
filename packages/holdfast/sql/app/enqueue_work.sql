-- Adds work in the caller's transaction, the first one first. Of a unique key that is already there
-- (pending or claimed) the existing row is told, and nothing is added. If another transaction is just
-- adding it, that one is waited for. Keys are inserted in order, so that two callers cannot deadlock.
-- items: [{id, queue, scope, payload, priority, unique_key, delay_ms, run_at, max_attempts}], answer:
-- [[id, added]] in that order.
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
      ORDER BY g.unique_key, o.at
      ON CONFLICT (bucket, queue, unique_key)
        WHERE unique_key IS NOT NULL AND status IN ('pending', 'claimed') DO NOTHING
      RETURNING id
    )
    SELECT coalesce(array_agg(n.id), '{}') INTO more FROM new n;
    added := added || more;
    -- A statement of its own: it sees what others have committed.
    SELECT jsonb_agg(jsonb_build_array(coalesce(mine, known), mine IS NOT NULL) ORDER BY o.at)::text,
           bool_and(coalesce(mine, known) IS NOT NULL)
    INTO answer, complete
    FROM jsonb_array_elements(items) WITH ORDINALITY AS o(item, at)
    CROSS JOIN LATERAL jsonb_to_record(o.item) AS g(id uuid, queue text, scope text, unique_key text)
    CROSS JOIN LATERAL (
      SELECT CASE WHEN g.id = ANY (added) THEN g.id END AS mine,
             CASE WHEN g.id <> ALL (added) THEN (
               SELECT w.id FROM work w
               WHERE w.bucket = bucket_of(g.scope) AND w.queue = g.queue
                 AND w.unique_key = g.unique_key AND w.status IN ('pending', 'claimed')) END AS known
    ) found;
    -- Where it was neither added nor found, it was finished in between: once more. At REPEATABLE READ
    -- a row that cannot be seen has made the INSERT fail.
    EXIT WHEN complete;
  END LOOP;
  IF channel IS NOT NULL AND cardinality(added) > 0 THEN
    PERFORM pg_notify(channel, '');
  END IF;
  -- That it was there before is only certain once the standby has it too.
  IF cardinality(added) = 0 THEN PERFORM wait_for_standby(); END IF;
  RETURN answer;
END
$$;
