-- Books what is due on an account, if anything is, for somebody who looks: so that they see what the next operation will
-- find.
CREATE OR REPLACE FUNCTION :"schema".book_due(bucket smallint, account uuid) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
BEGIN
  PERFORM FROM balance b
  WHERE b.bucket = bucket AND b.account = account AND b.due_at <= clock_timestamp()
  FOR NO KEY UPDATE;
  IF FOUND THEN
    PERFORM fall_due(bucket, account);
  END IF;
END;
$$;
