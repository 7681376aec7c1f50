-- Notes a grant that the caller books, who has locked the balance. What the account owes is paid from
-- it first, unless it is restricted to features. Returns how much of it lapses at once: all, if it has expired already.
CREATE OR REPLACE FUNCTION :"schema".open_grant(
  bucket smallint, account uuid, seq bigint, id uuid, operation_id text, amount bigint, terms jsonb,
  note jsonb, moment timestamptz, balance_before bigint, owed bigint
) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  begins CONSTANT timestamptz :=
    greatest(coalesce((terms ->> 'effective_at')::timestamptz, moment), moment);
  ends CONSTANT timestamptz := coalesce((terms ->> 'expires_at')::timestamptz,
    begins + (terms ->> 'expires_in_ms')::bigint * interval '1 millisecond', 'infinity');
  pending CONSTANT boolean := begins > moment;
  late CONSTANT boolean := NOT pending AND ends <= moment;
BEGIN
  -- Only what came before the first grant is in none.
  IF balance_before > 0
    AND NOT EXISTS (SELECT FROM credit_grant c WHERE c.bucket = bucket AND c.account = account) THEN
    PERFORM take_up(bucket, account, seq, balance_before, operation_id, moment);
  END IF;
  INSERT INTO credit_grant (bucket, account, id, priority, ordinal, amount, remaining, empty, lapsed,
    effective_at, expires_at, state, rollover_limit, rollover_for, operation_id, note)
  VALUES (bucket, account, id, coalesce((terms ->> 'priority')::smallint, 50), seq, amount,
    CASE WHEN late THEN 0 ELSE amount END, late, CASE WHEN late THEN amount ELSE 0 END, begins, ends,
    CASE WHEN late THEN 2 WHEN pending THEN 0 ELSE 1 END,
    coalesce((terms ->> 'rollover_limit')::bigint, 0), (terms ->> 'rollover_for')::interval,
    operation_id, CASE WHEN jsonb_exists(terms, 'only_for')
      THEN coalesce(note, '{}') || jsonb_build_object('onlyFor', terms -> 'only_for') ELSE note - 'onlyFor' END);
  IF late THEN RETURN amount; END IF;
  IF NOT pending THEN
    PERFORM draw_grants(bucket, account, seq, owed, true, NULL);
  END IF;
  RETURN 0;
END;
$$;
