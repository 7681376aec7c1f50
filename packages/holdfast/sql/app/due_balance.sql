-- read_balance() of now, after what is due was booked: what the next operation will find. And how much of it is for
-- other features than this one.
CREATE OR REPLACE FUNCTION :"schema".due_balance(
  bucket smallint, account uuid, book text, key text, scope text, feature text
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
BEGIN
  PERFORM book_due(bucket, account);
  RETURN read_balance(bucket, book, key, scope, NULL)::jsonb
    || jsonb_build_object('apart', set_apart(bucket, account, feature)::text);
END
$$;
