-- Forgets operation ids of a range of buckets that are older than a moment, and holds that ended
-- before it; returns how many ids. An id that is used again after that is applied again, so the moment
-- has to be more than a day ago: later than any retry. What made a hold that is still there is kept,
-- and so is a refusal that is still to be repeated.
CREATE OR REPLACE FUNCTION :"schema".forget_operations(before timestamptz, first integer, last integer)
RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  -- What another server has, or is about to.
  gone CONSTANT smallint[] := ARRAY(
    SELECT m.bucket FROM shard_map m
    WHERE m.bucket BETWEEN first AND last AND (m.leaving OR NOT m.here)
  );
  forgotten bigint;
BEGIN
  IF before IS NULL OR before > now() - interval '1 day' THEN
    RAISE EXCEPTION 'operation ids are kept for a day at least'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  INSERT INTO horizon (bucket, operations)
  SELECT x, before FROM generate_series(first, last) x WHERE x <> ALL (gone)
  ON CONFLICT (bucket) DO UPDATE
  SET operations = greatest(horizon.operations, excluded.operations);
  DELETE FROM hold h
  WHERE h.bucket BETWEEN first AND last AND h.state <> 0 AND h.ended_at < before
    AND h.bucket <> ALL (gone);
  DELETE FROM operation o
  WHERE o.bucket BETWEEN first AND last AND o.at < before
    AND o.bucket <> ALL (gone) AND (o.refused_until IS NULL OR o.refused_until < now())
    AND (o.kind <> 3 OR NOT EXISTS (
      SELECT FROM hold h
      WHERE h.bucket = o.bucket AND h.id = hash_name(concat(o.owner, ':', o.id))
        AND h.account = o.account
    ));
  GET DIAGNOSTICS forgotten = ROW_COUNT;
  RETURN forgotten;
END;
$$;
