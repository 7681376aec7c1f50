-- On the target, when everything has arrived: from now on the buckets are here. This is what decides the
-- move: before it can be undone, after it has to be brought to its end. Versions are those of the source.
-- HF009 if the source had another number of rows, in any table and bucket: what it has is deleted after this.
CREATE OR REPLACE FUNCTION :"schema".take_move(move uuid, versions bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,taken,done}');
  expected CONSTANT jsonb := journal.detail -> 'rows';
  found jsonb;
  wrong record;
BEGIN
  IF journal.step <> 'copying' THEN
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM shard_end e WHERE e.move = journal.id) OR expected IS NULL
    OR cardinality(versions) IS DISTINCT FROM cardinality(journal.buckets)
    OR EXISTS (
      SELECT FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid
      WHERE s.subname = move_name(move) AND r.srsubstate <> 'r'
    )
  THEN
    RAISE EXCEPTION 'not everything has arrived' USING ERRCODE = 'HF004';
  END IF;
  found := count_buckets(
    move_tables(ARRAY(SELECT jsonb_array_elements_text(journal.detail -> 'tables'))), journal.buckets
  );
  IF found IS DISTINCT FROM expected THEN
    SELECT t.name, b.bucket, coalesce(found -> t.name ->> b.bucket, '0') AS here,
      coalesce(expected -> t.name ->> b.bucket, '0') AS there
    INTO wrong
    FROM jsonb_object_keys(expected || found) AS t(name),
      jsonb_object_keys(coalesce(expected -> t.name, '{}') || coalesce(found -> t.name, '{}')) AS b(bucket)
    WHERE (found -> t.name -> b.bucket) IS DISTINCT FROM (expected -> t.name -> b.bucket)
    ORDER BY t.name, b.bucket LIMIT 1;
    RAISE EXCEPTION '% has % of % rows in bucket %', wrong.name, wrong.here, wrong.there, wrong.bucket
      USING ERRCODE = 'HF009';
  END IF;
  -- First: what the source writes by mistake, or deletes in the end, must not reach rows that are ours.
  PERFORM end_subscription(move);
  -- Locks of sessions stay behind: whoever gets one here has not got it from the holder of the lease.
  UPDATE lease l SET by_session = false WHERE l.bucket = ANY (journal.buckets) AND l.by_session;
  UPDATE shard_map m SET here = true, shard = journal.target, version = greatest(m.version, v.version) + 1
  FROM unnest(journal.buckets, versions) AS v(bucket, version)
  WHERE m.bucket = v.bucket;
  DELETE FROM shard_end e WHERE e.move = journal.id;
  UPDATE shard_move m SET step = 'taken', changed_at = clock_timestamp(), detail = m.detail - 'rows' WHERE m.id = move;
END;
$$;
