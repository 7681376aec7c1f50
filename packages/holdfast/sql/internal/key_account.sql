-- The account of a key, or what the accounts of its windows are made of. The client works it out as
-- well; here it is only checked, when an account is opened.
CREATE OR REPLACE FUNCTION :"schema".key_account(scope text, book text, key text) RETURNS uuid
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT :"schema".hash_name(
    concat(length(scope), ':', scope, length(book), ':', book, length(key), ':', key))
$$;
