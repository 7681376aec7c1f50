-- The least that a line has to get: all that it asks for, or anything at all.
CREATE OR REPLACE FUNCTION :"schema".least_of(amount bigint, flag integer) RETURNS bigint
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN flag OPERATOR(pg_catalog.&) 1024 OPERATOR(pg_catalog.<>) 0 THEN 1 ELSE amount END
$$;
