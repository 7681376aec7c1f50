-- The number of the advisory lock under which a book is written down.
CREATE OR REPLACE FUNCTION :"schema".book_lock(name text) RETURNS bigint
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT ('x' || encode(substr(sha256(convert_to(concat('holdfast:book:', name), 'UTF8')), 1, 8), 'hex'))
    ::bit(64)::bigint
$$;
