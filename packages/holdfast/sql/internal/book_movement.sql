-- Writes one movement and returns the balance after it. The row of the balance itself is the
-- caller's to write, who has locked it.
CREATE OR REPLACE FUNCTION :"schema".book_movement(
  b :"schema".balance, kind smallint, credit bigint, debit bigint, hold bigint, operation_id text, hold_id uuid,
  grant_id uuid
) RETURNS :"schema".balance
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
BEGIN
  b.credited := b.credited + credit;
  b.debited := b.debited + debit;
  b.held := b.held + hold;
  b.seq := b.seq + 1;
  INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited, held,
    allowance, operation_id, hold_id, grant_id)
  VALUES (b.bucket, kind, b.account, b.seq, b.moved_at, credit, debit, hold, b.credited, b.debited,
    b.held, b.allowance, operation_id, hold_id, grant_id);
  RETURN b;
END;
$$;
