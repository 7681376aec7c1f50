import { ownFiles, type SchemaFiles, schemaFile } from '../../src/schema/schema-files.ts'

/** `app/enqueue_work` as it was before migration 0009: it names the old index, which leaves out the scope. */
const oldEnqueue = `
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
    EXIT WHEN complete;
  END LOOP;
  RETURN answer;
END
$$;
`

/** The functions that adding work needs: installing all of them takes most of a test's time. */
const needed: ReadonlySet<string> = new Set([
  'internal/bucket_of',
  'internal/wait_for_standby',
  'app/enqueue_work',
])

/** The files of today with no more functions than adding work needs. */
export function filesOfWork(): SchemaFiles {
  const files = ownFiles()
  return { ...files, repeatables: files.repeatables.filter(({ name }) => needed.has(name)) }
}

/** What a database has that was installed before migration 0009. */
export function filesBefore0009(): SchemaFiles {
  const { migrations, repeatables } = filesOfWork()
  return {
    version: '0.0.9',
    migrations: migrations.filter(({ name }) => name < 'migrations/0009'),
    repeatables: repeatables.map((file) =>
      file.name === 'app/enqueue_work' ? schemaFile(file.name, oldEnqueue) : file,
    ),
  }
}
