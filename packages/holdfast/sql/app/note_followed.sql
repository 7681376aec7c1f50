-- Notes that a follower has read everything that was there so long ago.
CREATE OR REPLACE FUNCTION :"schema".note_followed(name text, ago_ms bigint) RETURNS text
LANGUAGE sql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
  UPDATE follower f
  SET read_up_to = greatest(f.read_up_to, clock_timestamp() - ago_ms * interval '1 millisecond')
  WHERE f.name = note_followed.name
  RETURNING f.name
$$;
