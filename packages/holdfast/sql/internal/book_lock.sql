-- The number of the advisory lock under which a book is written down.
CREATE OR REPLACE FUNCTION :"schema".book_lock(name text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT ('x' OPERATOR(pg_catalog.||) pg_catalog.encode(pg_catalog.substr(pg_catalog.sha256(pg_catalog.convert_to(
    pg_catalog.concat('holdfast:book:', name), 'UTF8')), 1, 8), 'hex'))::bit(64)::bigint
$$;
