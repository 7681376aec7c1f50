-- The routing bucket of a scope: the first 12 bits of its SHA-256, the same on every server.
CREATE OR REPLACE FUNCTION :"schema".bucket_of(scope text) RETURNS smallint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (('x' OPERATOR(pg_catalog.||) pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(
    pg_catalog.convert_to(scope, 'UTF8')), 1, 2), 'hex'))::bit(16)::integer OPERATOR(pg_catalog.>>) 4)::smallint
$$;
