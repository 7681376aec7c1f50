-- Declares a book anew. Processes that have compared theirs before do not look again.
CREATE OR REPLACE FUNCTION :"schema".redeclare_book(name text, declaration text) RETURNS text
LANGUAGE sql VOLATILE SET search_path = :"schema", pg_temp AS $$
  INSERT INTO book (name, declaration) VALUES (name, declaration::jsonb)
  ON CONFLICT ON CONSTRAINT book_pkey
  DO UPDATE SET declaration = excluded.declaration, declared_at = clock_timestamp()
  RETURNING book.declaration::text
$$;
