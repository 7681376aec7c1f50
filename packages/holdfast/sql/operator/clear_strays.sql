-- Deletes rows of buckets that are not here and in no move, at most so many; answers how many that were. They are left
-- where a server came back from a backup and another one has the bucket. As in clear_move() no trigger is asked.
CREATE OR REPLACE FUNCTION :"schema".clear_strays(names text[], most integer) RETURNS integer
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  gone smallint[];
BEGIN
  -- So that no move begins meanwhile.
  LOCK TABLE shard_move IN SHARE ROW EXCLUSIVE MODE;
  IF unconfirmed() THEN
    RAISE EXCEPTION 'it has to be compared with the other primaries first' USING ERRCODE = 'HF003';
  END IF;
  SELECT coalesce(array_agg(m.bucket), '{}') INTO gone FROM shard_map m
  WHERE NOT m.here AND NOT EXISTS (
    SELECT FROM shard_move j WHERE j.ended_at IS NULL AND m.bucket = ANY (j.buckets)
  );
  RETURN delete_buckets(move_tables(names), gone, most);
END;
$$;
