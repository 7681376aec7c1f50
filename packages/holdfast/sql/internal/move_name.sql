-- What the publication, the slot and the subscription of a move are called.
CREATE OR REPLACE FUNCTION :"schema".move_name(move uuid) RETURNS text
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT 'holdfast_move_' || replace(move::text, '-', '')
$$;
