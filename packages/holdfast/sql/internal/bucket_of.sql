-- The routing bucket of a scope: the first 12 bits of its SHA-256, the same on every server.
CREATE OR REPLACE FUNCTION :"schema".bucket_of(scope text) RETURNS smallint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT (('x' || encode(substr(sha256(convert_to(scope, 'UTF8')), 1, 2), 'hex'))::bit(16)::integer >> 4)::smallint
$$;
