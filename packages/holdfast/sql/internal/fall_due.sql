-- Applies what is due on one account whose balance row the caller has locked: open holds past their
-- time are expired, grants begin, lapse or roll over. Each is a movement of its own.
CREATE OR REPLACE FUNCTION :"schema".fall_due(bucket smallint, account uuid) RETURNS integer
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  b balance%ROWTYPE;
  fallen integer := 0;
BEGIN
  SELECT x.* INTO STRICT b FROM balance x WHERE x.bucket = bucket AND x.account = account;
  IF b.granted THEN
    RETURN grants_fall_due(bucket, account, moment);
  END IF;
  b.moved_at := greatest(b.moved_at, moment);
  WITH due AS (
    SELECT h.id, h.amount, h.operation_id, h.made_seq,
      row_number() OVER (ORDER BY h.expires_at, h.made_seq) AS position,
      sum(h.amount) OVER (ORDER BY h.expires_at, h.made_seq) AS freed
    FROM hold h
    WHERE h.bucket = bucket AND h.account = account AND h.state = 0 AND h.expires_at <= moment
  ), ended AS (
    UPDATE hold h
    SET state = 3, seq = b.seq + due.position, ended_at = b.moved_at
    FROM due
    WHERE h.bucket = bucket AND h.id = due.id AND h.account = account
  ), moved AS (
    INSERT INTO movement (bucket, kind, account, seq, at, credit, debit, hold, credited, debited,
      held, allowance, operation_id, hold_id)
    SELECT bucket, 6, account, b.seq + due.position, b.moved_at, 0, 0, -due.amount, b.credited,
      b.debited, b.held - due.freed, b.allowance, due.operation_id, due.id
    FROM due
  )
  SELECT count(*), b.held - coalesce(sum(due.amount), 0), b.seq + count(*)
  INTO fallen, b.held, b.seq
  FROM due;
  UPDATE balance x
  SET held = b.held, seq = b.seq, moved_at = CASE WHEN fallen > 0 THEN b.moved_at ELSE x.moved_at END,
    due_at = coalesce((
      SELECT min(h.expires_at) FROM hold h
      WHERE h.bucket = bucket AND h.account = account AND h.state = 0 AND h.expires_at > moment
    ), 'infinity')
  WHERE x.bucket = bucket AND x.account = account;
  RETURN fallen;
END;
$$;
