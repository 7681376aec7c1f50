-- Writes down a move of buckets, on the source and on the target, before anything else is done; answers the
-- step it is at, the first one or that of a move with this id that is known. HF003 if it cannot be.
CREATE OR REPLACE FUNCTION :"schema".open_move(
  move uuid, cluster uuid, buckets integer[], source text, target text, tables text[]
) RETURNS text
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
#variable_conflict use_variable
DECLARE
  wanted CONSTANT smallint[] := ARRAY(SELECT DISTINCT b FROM unnest(buckets) AS b ORDER BY b);
  self CONSTANT text := (SELECT s.shard FROM shard_self s WHERE s.cluster = cluster);
  moved regclass[];
  known text;
  t regclass;
  occupied boolean;
BEGIN
  -- Also before a move that is known goes on: the other end may be one of another cluster.
  IF self IS NULL OR self NOT IN (source, target) OR source = target THEN
    RAISE EXCEPTION 'it has another name, or is no part of this cluster' USING ERRCODE = 'HF003';
  END IF;
  -- Two moves cannot be written down at once, so that none has a bucket in common with another.
  LOCK TABLE shard_move IN SHARE ROW EXCLUSIVE MODE;
  SELECT m.step INTO known FROM shard_move m WHERE m.id = move;
  IF FOUND THEN
    RETURN known;
  END IF;
  IF unconfirmed() THEN
    RAISE EXCEPTION 'it has to be compared with the other primaries first' USING ERRCODE = 'HF003';
  END IF;
  IF cardinality(wanted) = 0 OR cardinality(wanted) <> (
    SELECT count(*) FROM shard_map m
    WHERE m.bucket = ANY (wanted) AND m.here = (self = source) AND NOT m.leaving
  ) THEN
    RAISE EXCEPTION 'a bucket is not where it is to be moved from' USING ERRCODE = 'HF003';
  END IF;
  IF EXISTS (SELECT FROM shard_move m WHERE m.ended_at IS NULL AND m.buckets && wanted) THEN
    RAISE EXCEPTION 'a bucket is part of another move that has not ended' USING ERRCODE = 'HF003';
  END IF;
  IF self = source AND current_setting('wal_level') <> 'logical' THEN
    RAISE EXCEPTION 'the source has not wal_level = logical' USING ERRCODE = 'HF003';
  END IF;
  moved := move_tables(tables);
  PERFORM refuse_tables(moved);
  PERFORM refuse_foreign_keys(moved);
  -- What is there would be deleted to make room.
  IF self = target THEN
    FOREACH t IN ARRAY moved LOOP
      EXECUTE format('SELECT EXISTS (SELECT FROM %s WHERE bucket = ANY ($1))', t) INTO occupied USING wanted;
      IF occupied THEN
        RAISE EXCEPTION '% has rows in these buckets already', t USING ERRCODE = 'HF003';
      END IF;
    END LOOP;
  END IF;
  INSERT INTO shard_move (id, buckets, source, target, step, detail)
  VALUES (move, wanted, source, target, 'copying', jsonb_build_object('tables', tables));
  RETURN 'copying';
END;
$$;
