-- What a book was declared as when it was first used, as JSON; null if that is not known yet. The first one to ask writes
-- down what it declares, and is answered "new".
--
-- Nobody waits for it: while a transaction that was first is open, others go on. Nor is it written where it could not
-- be seen that somebody was faster.
CREATE OR REPLACE FUNCTION :"schema".declare_book(name text, declaration text) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  kept jsonb;
BEGIN
  SELECT b.declaration INTO kept FROM book b WHERE b.name = name;
  IF kept IS NULL AND declaration IS NOT NULL
    AND current_setting('transaction_isolation') = 'read committed'
    AND current_setting('transaction_read_only') = 'off'
    AND pg_try_advisory_xact_lock(book_lock(name)) THEN
    INSERT INTO book (name, declaration) VALUES (name, declaration::jsonb) ON CONFLICT DO NOTHING;
    IF FOUND THEN RETURN 'new'; END IF;
  END IF;
  RETURN kept::text;
END;
$$;
