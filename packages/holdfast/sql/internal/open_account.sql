-- Opens an account unless it exists. The id has to be that of the name, so that nobody can put a
-- balance under somebody else's. A window starts with the limit that was set for its key.
CREATE OR REPLACE FUNCTION :"schema".open_account(
  bucket smallint, account uuid, base uuid, book text, key text, scope text, unit text, zone text,
  allowance bigint, walled boolean, moment timestamptz
) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  since timestamptz := window_start(unit, zone, moment);
  pinned bigint;
BEGIN
  IF base IS DISTINCT FROM key_account(scope, book, key) OR bucket <> bucket_of(scope)
    OR account <> coalesce(window_account(base, since), base) THEN
    RAISE EXCEPTION 'the account id does not belong to this scope, book and key'
      USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF since IS NOT NULL THEN
    pinned := pinned_allowance(bucket, base);
  END IF;
  INSERT INTO account (bucket, id, book, key, scope, window_start, window_end)
  VALUES (bucket, account, book, key, scope, coalesce(since, '-infinity'),
    coalesce(window_end(unit, zone, moment), 'infinity'))
  ON CONFLICT DO NOTHING;
  INSERT INTO balance (bucket, account, allowance, walled, pinned)
  VALUES (bucket, account, coalesce(pinned, allowance), walled, pinned IS NOT NULL)
  ON CONFLICT DO NOTHING;
END;
$$;
