-- The account of a key, or what the accounts of its windows are made of. The client works it out as
-- well; here it is only checked, when an account is opened.
CREATE OR REPLACE FUNCTION :"schema".key_account(scope text, book text, key text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT :"schema".hash_name(
    pg_catalog.concat(pg_catalog.length(scope), ':', scope, pg_catalog.length(book), ':', book,
      pg_catalog.length(key), ':', key))
$$;
