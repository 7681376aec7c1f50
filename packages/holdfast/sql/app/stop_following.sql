-- Forgets a follower and where it was; tells its name, or null if there was none.
CREATE OR REPLACE FUNCTION :"schema".stop_following(name text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  known text;
BEGIN
  DELETE FROM follower f WHERE f.name = name RETURNING f.name INTO known;
  -- In a statement of its own: somebody who was reading has committed places while the first one waited.
  DELETE FROM followed f WHERE f.follower = name;
  RETURN known;
END
$$;
