-- When enough of a rolling window has expired for what is short now. Takings that the same call has
-- accepted are not written yet: "amounts" and "untils", in the order of their ends; "changed" are the
-- rows that it has ended or extended.
CREATE OR REPLACE FUNCTION :"schema".rolled_on_at(
  bucket smallint, account uuid, shortage bigint, amounts bigint[], untils timestamptz[], changed tid[]
) RETURNS bigint
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  h record;
  next integer := 1;
  rest bigint := shortage;
BEGIN
  -- As far as needed: a window may have thousands.
  FOR h IN
    SELECT x.expires_at, x.amount, x.ctid AS place FROM hold x
    WHERE x.bucket = bucket AND x.account = account AND x.state = 0
    ORDER BY x.expires_at
  LOOP
    CONTINUE WHEN h.place = ANY (changed);
    WHILE untils[next] < h.expires_at LOOP
      rest := rest - amounts[next];
      IF rest <= 0 THEN RETURN micros(untils[next]); END IF;
      next := next + 1;
    END LOOP;
    rest := rest - h.amount;
    IF rest <= 0 THEN RETURN micros(h.expires_at); END IF;
  END LOOP;
  WHILE untils[next] IS NOT NULL LOOP
    rest := rest - amounts[next];
    IF rest <= 0 THEN RETURN micros(untils[next]); END IF;
    next := next + 1;
  END LOOP;
  RETURN NULL;
END;
$$;
