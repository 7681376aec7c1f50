-- The word for movement.kind.
CREATE OR REPLACE FUNCTION :"schema".movement_kind(kind smallint) RETURNS text
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
  SELECT ('{credit,debit,hold,settle,release,expire,refund,grant,lapse,void,adjust,opening,return,limit,transfer-out,transfer-in}'::pg_catalog.text[])[kind]
$$;
