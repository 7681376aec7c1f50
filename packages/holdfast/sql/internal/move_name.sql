-- What the publication, the slot and the subscription of a move are called.
CREATE OR REPLACE FUNCTION :"schema".move_name(move uuid) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT 'holdfast_move_' OPERATOR(pg_catalog.||) pg_catalog.replace(move::pg_catalog.text, '-', '')
$$;
