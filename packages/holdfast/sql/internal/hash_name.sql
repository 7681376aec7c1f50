-- 128 bits of the SHA-256 of a name. Ids made this way need no look-up and agree between servers.
CREATE OR REPLACE FUNCTION :"schema".hash_name(name text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT encode(substr(sha256(convert_to(name, 'UTF8')), 1, 16), 'hex')::uuid
$$;
