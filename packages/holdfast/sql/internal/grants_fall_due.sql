-- fall_due() for an account with grants. In the order of time, so that it does not matter when
-- somebody looks: holds expire and give back what they took, grants begin, grants end and lapse or
-- roll over.
CREATE OR REPLACE FUNCTION :"schema".grants_fall_due(bucket smallint, account uuid, moment timestamptz)
RETURNS integer
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  b balance%ROWTYPE;
  h hold%ROWTYPE;
  g credit_grant%ROWTYPE;
  owed bigint;
  lapsed bigint;
  rolled bigint;
  before bigint;
BEGIN
  SELECT x.* INTO STRICT b FROM balance x WHERE x.bucket = bucket AND x.account = account;
  b.moved_at := greatest(b.moved_at, moment);
  before := b.seq;
  LOOP
    SELECT x.* INTO h FROM hold x
    WHERE x.bucket = bucket AND x.account = account AND x.state = 0
    ORDER BY x.expires_at, x.made_seq LIMIT 1;
    SELECT x.* INTO g FROM credit_grant x
    WHERE x.bucket = bucket AND x.account = account AND x.due_at < 'infinity'
    ORDER BY x.due_at LIMIT 1;
    b.due_at := least(h.expires_at, g.due_at, 'infinity');
    EXIT WHEN b.due_at > moment;
    owed := greatest(set_apart(bucket, account, NULL) - b.credited + b.debited + b.held, 0);
    IF h.expires_at = b.due_at THEN
      b := book_movement(b, 6::smallint, 0, 0, - h.amount, h.operation_id, h.id, NULL);
      UPDATE hold x SET state = 3, seq = b.seq, ended_at = b.moved_at
      WHERE x.bucket = bucket AND x.id = h.id AND x.account = account;
      lapsed := give_back(bucket, account, h.made_seq, h.amount, owed, b.seq, h.operation_id, moment);
      IF lapsed > 0 THEN
        b := book_movement(b, 9::smallint, 0, lapsed, 0, h.operation_id, h.id, NULL);
      END IF;
    ELSIF g.state = 0 THEN
      b := book_movement(b, 8::smallint, g.amount, 0, 0, g.operation_id, NULL, g.id);
      UPDATE credit_grant x SET state = 1
      WHERE x.bucket = bucket AND x.account = account AND x.id = g.id;
      PERFORM draw_grants(bucket, account, b.seq, owed, true, NULL);
    ELSE
      rolled := CASE WHEN g.rollover_for IS NULL THEN 0 ELSE least(g.remaining, g.rollover_limit) END;
      UPDATE credit_grant x
      SET state = 2, remaining = 0, empty = true, lapsed = x.lapsed + g.remaining
      WHERE x.bucket = bucket AND x.account = account AND x.id = g.id;
      IF rolled > 0 THEN
        -- Once: what rolled over does not roll again.
        INSERT INTO credit_grant (bucket, account, id, priority, ordinal, amount, remaining,
          effective_at, expires_at, state, rolled_from, operation_id, note)
        VALUES (bucket, account, hash_name(concat(g.id, ':rolled')), g.priority, g.ordinal, rolled,
          rolled, g.expires_at, g.expires_at + g.rollover_for, 1, g.id, g.operation_id, g.note);
      END IF;
      IF g.remaining > rolled THEN
        b := book_movement(b, 9::smallint, 0, g.remaining - rolled, 0, g.operation_id, NULL, g.id);
      END IF;
    END IF;
  END LOOP;
  UPDATE balance x
  SET credited = b.credited, debited = b.debited, held = b.held, seq = b.seq,
    moved_at = CASE WHEN b.seq > before THEN b.moved_at ELSE x.moved_at END, due_at = b.due_at
  WHERE x.bucket = bucket AND x.account = account;
  RETURN b.seq - before;
END;
$$;
