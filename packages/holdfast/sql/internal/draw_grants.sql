-- Draws an amount from the active grants of an account that are open to a feature, in burn order, and notes which grant
-- paid how much of the movement. What no grant can pay is noted without one. Pays arrears only as far as
-- there is something to pay them from. The caller has locked the balance.
CREATE OR REPLACE FUNCTION :"schema".draw_grants(
  bucket smallint, account uuid, seq bigint, amount bigint, arrears boolean, feature text
) RETURNS void
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  g record;
  share bigint;
  rest bigint := amount;
  position integer := coalesce((
    SELECT max(a.ordinal) FROM allocation a
    WHERE a.bucket = bucket AND a.account = account AND a.seq = seq
  ), 0);
BEGIN
  IF rest <= 0 THEN RETURN; END IF;
  FOR g IN
    SELECT c.ctid AS place, c.id, c.remaining FROM credit_grant c
    WHERE c.bucket = bucket AND c.account = account AND c.state = 1 AND NOT c.empty
      AND open_to(c.note, feature)
    ORDER BY c.priority, c.expires_at, c.ordinal
  LOOP
    share := least(rest, g.remaining);
    rest := rest - share;
    position := position + 1;
    UPDATE credit_grant c SET remaining = g.remaining - share, empty = (g.remaining = share)
    WHERE c.ctid = g.place;
    INSERT INTO allocation (bucket, account, seq, ordinal, grant_id, amount, arrears)
    VALUES (bucket, account, seq, position, g.id, share, arrears);
    EXIT WHEN rest = 0;
  END LOOP;
  IF rest > 0 AND NOT arrears THEN
    INSERT INTO allocation (bucket, account, seq, ordinal, amount)
    VALUES (bucket, account, seq, position + 1, rest);
  END IF;
END;
$$;
