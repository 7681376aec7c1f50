-- The books of this server and what they were declared as, as JSON.
CREATE OR REPLACE FUNCTION :"schema".read_books() RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
  SELECT coalesce(
    json_agg(json_build_object('book', b.name, 'declared', b.declaration, 'at', micros(b.declared_at)::text)
      ORDER BY b.name), '[]')::text
  FROM book b
$$;
