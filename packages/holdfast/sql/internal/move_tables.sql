-- The tables that a move takes along: those of ours that go by the bucket, and the caller's own ones, which
-- need the column as well, in what identifies a row. What tells about the server itself stays, whoever names it.
CREATE OR REPLACE FUNCTION :"schema".move_tables(names text[]) RETURNS regclass[]
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
DECLARE
  tables regclass[];
  name text;
  named regclass;
BEGIN
  SELECT array_agg(c.oid::regclass ORDER BY c.relname) INTO tables
  FROM pg_class c
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attname = 'bucket'
  WHERE c.relnamespace = current_schema()::regnamespace AND c.relkind IN ('r', 'p')
    AND NOT c.relispartition AND c.relname NOT IN ('shard_map', 'lock_name', 'lock_minute');
  FOREACH name IN ARRAY names LOOP
    named := to_regclass(name);
    CONTINUE WHEN named = ANY (tables);
    IF NOT EXISTS (
      SELECT FROM pg_index i
      JOIN pg_attribute a ON a.attrelid = i.indrelid AND a.attname = 'bucket' AND a.attnum = ANY (i.indkey)
      JOIN pg_class c ON c.oid = i.indrelid AND c.relkind IN ('r', 'p')
        AND c.relnamespace <> current_schema()::regnamespace
      WHERE i.indrelid = named AND i.indisprimary AND c.relreplident = 'd'
    ) THEN
      RAISE EXCEPTION 'a table to be taken along has no column bucket in its primary key'
        USING ERRCODE = 'HF003';
    END IF;
    tables := tables || named;
  END LOOP;
  RETURN tables;
END;
$$;
