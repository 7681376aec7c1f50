-- Tells this server what the other primaries have, as a JSON list of [bucket, shard, version]: it gives up what it
-- believes to have and another one has by a later move, and serves the rest from now on. Answers how many buckets it
-- gave up. It never gets a bucket by this, and what is told twice, or late, changes nothing.
--
-- "complete" says that all of the others were asked. Where they were not, a server that was merely started again serves;
-- one that was restored, copied or promoted does not (HF008), because what it has may be with one that is missing.
CREATE OR REPLACE FUNCTION :"schema".confirm_shards(others text, complete boolean) RETURNS integer
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
DECLARE
  own_line CONSTANT text := substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8);
  given_up integer;
BEGIN
  UPDATE shard_map m SET here = false, leaving = false, shard = o.shard, version = o.version
  FROM (
    SELECT (x.e ->> 0)::smallint AS bucket, x.e ->> 1 AS shard, (x.e ->> 2)::bigint AS version
    FROM jsonb_array_elements(others::jsonb) AS x(e)
  ) o
  WHERE m.bucket = o.bucket AND m.here AND m.version < o.version
    -- One that is handed over in a move is left to that move.
    AND NOT m.leaving;
  GET DIAGNOSTICS given_up = ROW_COUNT;
  IF unconfirmed() THEN
    UPDATE shard_self s
    SET started = pg_postmaster_start_time(), place = pg_relation_filepath(s.tableoid), line = own_line
    WHERE complete OR (s.place, s.line) = (pg_relation_filepath(s.tableoid), own_line);
    IF NOT FOUND THEN
      RAISE EXCEPTION 'this server has to be compared with all other primaries' USING ERRCODE = 'HF008';
    END IF;
  END IF;
  RETURN given_up;
END
$$;
