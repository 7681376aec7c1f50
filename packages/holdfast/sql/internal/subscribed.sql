-- Whether this server receives what a move sends.
CREATE OR REPLACE FUNCTION :"schema".subscribed(move uuid) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM pg_catalog.pg_subscription s
    JOIN pg_catalog.pg_database d ON d.oid OPERATOR(pg_catalog.=) s.subdbid
      AND d.datname OPERATOR(pg_catalog.=) pg_catalog.current_database()
    WHERE s.subname
      OPERATOR(pg_catalog.=) ('holdfast_move_' OPERATOR(pg_catalog.||) pg_catalog.replace(move::pg_catalog.text, '-', ''))
  )
$$;
