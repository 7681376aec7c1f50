-- Whether this server receives what a move sends.
CREATE OR REPLACE FUNCTION :"schema".subscribed(move uuid) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM pg_catalog.pg_subscription s
    JOIN pg_catalog.pg_database d ON d.oid = s.subdbid AND d.datname = current_database()
    WHERE s.subname = 'holdfast_move_' || replace(move::text, '-', '')
  )
$$;
