-- Partitions are not changed while buckets come or go: what is dropped or filled anew is not what the other
-- server hears of. Called with the lock that CREATE PUBLICATION waits for.
CREATE OR REPLACE FUNCTION :"schema".refuse_while_moving() RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
BEGIN
  IF EXISTS (SELECT FROM shard_move m WHERE m.ended_at IS NULL) THEN
    RAISE EXCEPTION 'buckets are being moved; wait until that has ended'
      USING ERRCODE = 'object_not_in_prerequisite_state';
  END IF;
END;
$$;
