-- Whether a key that is new in this scope is in use in others: then the scope was probably forgotten. Of a key with many
-- windows the latest are enough.
CREATE OR REPLACE FUNCTION :"schema".is_forgotten_scope(book text, key text, scope text) RETURNS boolean
LANGUAGE plpgsql VOLATILE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
BEGIN
  RETURN coalesce((
    SELECT bool_and(x.scope <> scope)
    FROM (
      SELECT a.scope FROM account a WHERE a.book = book AND a.key = key ORDER BY a.window_start DESC LIMIT 10
    ) x
  ), false);
END;
$$;
