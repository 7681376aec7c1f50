-- On the source: HF003 if row-level security would hide rows of a table from the role by which the target reads them:
-- they would not arrive. A role that the connection does not name, or that is not here, is none that sees all.
CREATE OR REPLACE FUNCTION :"schema".refuse_hidden_rows(names text[], peer text) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  hidden regclass;
BEGIN
  SELECT c.oid INTO hidden
  FROM unnest(move_tables(names)) AS t
  JOIN pg_class c ON c.oid = t AND c.relrowsecurity
  WHERE NOT EXISTS (
    SELECT FROM pg_roles r
    WHERE r.rolname = peer AND (r.rolsuper OR r.rolbypassrls
      OR (pg_has_role(r.oid, c.relowner, 'USAGE') AND NOT c.relforcerowsecurity))
  )
  ORDER BY c.relname LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION 'row-level security of % may hide rows from the user of the connection, who needs BYPASSRLS and '
      'has to be named in it', hidden USING ERRCODE = 'HF003';
  END IF;
END;
$$;
