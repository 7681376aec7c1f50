-- What one movement of an account with grants does to them. The caller has locked the balance and
-- writes it; "balance_after" is credited - debited - held with this movement. Returns how much
-- lapsed because it came back to a grant that has ended: the caller books that as a movement.
--
-- All functions on grants keep: the active grants together have what the balance has, or the
-- account owes and only those have something that are restricted to features.
CREATE OR REPLACE FUNCTION :"schema".move_grants(
  bucket smallint, account uuid, kind smallint, seq bigint, debit bigint, credit bigint,
  hold bigint, made_seq bigint, refunded_seq bigint, id uuid, operation_id text, amount bigint,
  terms jsonb, note jsonb, moment timestamptz, balance_after bigint, feature text
) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  balance_before CONSTANT bigint := balance_after - credit + debit + hold;
  back CONSTANT bigint := - hold - debit;
  owed bigint;
BEGIN
  IF credit > 0 OR back > 0 THEN
    owed := greatest(set_apart(bucket, account, NULL) - balance_before, 0);
  END IF;
  IF kind = 8 THEN
    RETURN open_grant(bucket, account, seq, id, operation_id, amount, terms, note, moment,
      balance_before, owed);
  ELSIF kind = 10 THEN
    UPDATE credit_grant c
    SET state = 3, remaining = 0, empty = true, lapsed = c.lapsed + c.remaining
    WHERE c.bucket = bucket AND c.account = account AND c.id = id
      AND (c.state = 1 AND c.remaining = debit OR c.state = 0 AND debit = 0);
    IF NOT FOUND THEN
      RAISE EXCEPTION 'a grant is voided by itself, not together with what changes it'
        USING ERRCODE = 'invalid_parameter_value';
    END IF;
  ELSIF kind = 7 THEN
    RETURN give_back(bucket, account, refunded_seq, credit, owed, seq, operation_id, moment);
  ELSIF kind IN (4, 5) AND back > 0 THEN
    RETURN give_back(bucket, account, made_seq, back, owed, seq, operation_id, moment);
  ELSIF kind IN (4, 5) THEN
    -- Above what was held, or after it went back: noted with the hold, so that a refund of the hold
    -- finds all that it took.
    PERFORM draw_grants(bucket, account, made_seq, - back, false, feature);
  ELSIF credit > 0 THEN
    PERFORM take_up(bucket, account, seq, credit, operation_id, moment);
    PERFORM draw_grants(bucket, account, seq, owed, true, NULL);
  ELSE
    PERFORM draw_grants(bucket, account, seq, - back, false, feature);
  END IF;
  RETURN 0;
END;
$$;
