-- 128 bits of the SHA-256 of a name. Ids made this way need no look-up and agree between servers.
CREATE OR REPLACE FUNCTION :"schema".hash_name(name text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(name, 'UTF8')), 1, 16), 'hex')
    ::pg_catalog.uuid
$$;
