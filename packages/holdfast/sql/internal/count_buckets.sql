-- How many rows each table has in each of these buckets, as {table: {bucket: rows}}; what has none is not in it. Fails
-- where row-level security would leave some out, and is compared with the other end of a move: see take_move().
CREATE OR REPLACE FUNCTION :"schema".count_buckets(tables regclass[], buckets smallint[]) RETURNS jsonb
-- Others wait while it counts, for which a compiler has no time.
LANGUAGE plpgsql SET search_path = :"schema", pg_temp SET quote_all_identifiers = off SET row_security = off SET jit = off AS $$
DECLARE
  counts jsonb := '{}';
  t regclass;
  own jsonb;
BEGIN
  FOREACH t IN ARRAY tables LOOP
    EXECUTE format('SELECT jsonb_object_agg(x.bucket, x.rows) FROM ('
      'SELECT bucket, count(*) AS rows FROM %s WHERE bucket = ANY ($1) GROUP BY bucket) x', t)
    INTO own USING buckets;
    IF own IS NOT NULL THEN
      counts := counts || jsonb_build_object(t::text, own);
    END IF;
  END LOOP;
  RETURN counts;
END;
$$;
