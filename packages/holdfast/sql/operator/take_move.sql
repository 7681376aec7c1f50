-- On the target, when everything has arrived: from now on the buckets are here. This is what decides the
-- move: before it can be undone, after it has to be brought to its end. Versions are those of the source.
CREATE OR REPLACE FUNCTION :"schema".take_move(move uuid, versions bigint[]) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  journal CONSTANT shard_move := move_at(move, '{copying,taken,done}');
BEGIN
  IF journal.step <> 'copying' THEN
    RETURN;
  END IF;
  IF NOT EXISTS (SELECT FROM shard_end e WHERE e.move = journal.id)
    OR cardinality(versions) IS DISTINCT FROM cardinality(journal.buckets)
    OR EXISTS (
      SELECT FROM pg_subscription s JOIN pg_subscription_rel r ON r.srsubid = s.oid
      WHERE s.subname = move_name(move) AND r.srsubstate <> 'r'
    )
  THEN
    RAISE EXCEPTION 'not everything has arrived' USING ERRCODE = 'HF004';
  END IF;
  -- First: what the source writes by mistake, or deletes in the end, must not reach rows that are ours.
  PERFORM end_subscription(move);
  UPDATE shard_map m SET here = true, shard = journal.target, version = greatest(m.version, v.version) + 1
  FROM unnest(journal.buckets, versions) AS v(bucket, version)
  WHERE m.bucket = v.bucket;
  DELETE FROM shard_end e WHERE e.move = journal.id;
  UPDATE shard_move m SET step = 'taken', changed_at = clock_timestamp() WHERE m.id = move;
END;
$$;
