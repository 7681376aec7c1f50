-- Who follows movements, as a JSON array.
CREATE OR REPLACE FUNCTION :"schema".read_followers() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
  SELECT coalesce(json_agg(json_build_object('name', f.name, 'book', f.book,
    'since', micros(f.began_at)::text,
    'readUpTo', micros(f.read_up_to)::text) ORDER BY f.name), '[]')::text
  FROM follower f
$$;
