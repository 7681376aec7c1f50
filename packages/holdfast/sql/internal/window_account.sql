-- The account of one window of a key.
CREATE OR REPLACE FUNCTION :"schema".window_account(base uuid, since timestamptz) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT :"schema".hash_name(base OPERATOR(pg_catalog.||) ':' OPERATOR(pg_catalog.||) :"schema".micros(since))
$$;
