-- Buckets that have a row in a table of ours, as a JSON list.
CREATE OR REPLACE FUNCTION :"schema".occupied_buckets() RETURNS text
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  occupied integer[] := '{}';
  further integer[];
  t regclass;
BEGIN
  FOREACH t IN ARRAY move_tables('{}') LOOP
    -- One look into the index for each bucket, however many rows it has.
    EXECUTE format('SELECT array_agg(b) FROM generate_series(0, 4095) AS b '
      'WHERE b <> ALL ($1) AND EXISTS (SELECT FROM %s WHERE bucket = b)', t)
    INTO further USING occupied;
    occupied := occupied || coalesce(further, '{}');
  END LOOP;
  RETURN array_to_json(occupied);
END;
$$;
