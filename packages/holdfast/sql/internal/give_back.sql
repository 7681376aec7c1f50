-- Gives an amount back to the grants that paid for the movement "taken", newest allocation first.
-- What was owed instead of paid lowers the debt; if the debt has been paid since, it goes back to
-- the grants that paid it. What comes back to a grant that has ended lapses. What then remains pays
-- what is still owed. Returns how much lapsed: the caller books that. The balance is locked.
CREATE OR REPLACE FUNCTION :"schema".give_back(
  bucket smallint, account uuid, taken bigint, amount bigint, owed bigint, seq bigint,
  operation_id text, moment timestamptz
) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  a record;
  share bigint;
  rest bigint := amount;
  -- Comes back without a grant it belongs to.
  loose bigint := 0;
  lapsed bigint := 0;
BEGIN
  FOR a IN
    SELECT x.ctid AS place, x.grant_id, x.amount - x.returned AS outstanding FROM allocation x
    WHERE x.bucket = bucket AND x.account = account AND x.seq = taken AND x.returned < x.amount
    ORDER BY x.ordinal DESC
  LOOP
    EXIT WHEN rest = 0;
    share := least(rest, a.outstanding);
    rest := rest - share;
    UPDATE allocation x SET returned = x.returned + share WHERE x.ctid = a.place;
    IF a.grant_id IS NULL THEN
      loose := loose + share;
    ELSE
      lapsed := lapsed + refill_grant(bucket, account, a.grant_id, share);
    END IF;
  END LOOP;
  -- Taken before the account had its first grant: nothing was noted then.
  loose := loose + rest;
  share := least(loose, owed);
  owed := owed - share;
  loose := loose - share;
  FOR a IN
    SELECT x.ctid AS place, x.grant_id, x.amount - x.returned AS outstanding FROM allocation x
    WHERE x.bucket = bucket AND x.account = account AND x.arrears AND x.returned < x.amount
    ORDER BY x.seq DESC, x.ordinal DESC
  LOOP
    EXIT WHEN loose = 0;
    share := least(loose, a.outstanding);
    loose := loose - share;
    UPDATE allocation x SET returned = x.returned + share WHERE x.ctid = a.place;
    lapsed := lapsed + refill_grant(bucket, account, a.grant_id, share);
  END LOOP;
  IF loose > 0 THEN
    PERFORM take_up(bucket, account, seq, loose, operation_id, moment);
  END IF;
  PERFORM draw_grants(bucket, account, seq, owed, true, NULL);
  RETURN lapsed;
END;
$$;
