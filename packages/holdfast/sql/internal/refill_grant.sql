-- Puts back what a grant had paid. Returns what lapses because the grant has ended.
CREATE OR REPLACE FUNCTION :"schema".refill_grant(
  bucket smallint, account uuid, id uuid, share bigint
) RETURNS bigint
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
#variable_conflict use_variable
DECLARE
  active boolean;
BEGIN
  UPDATE credit_grant c
  SET remaining = CASE WHEN c.state = 1 THEN c.remaining + share ELSE c.remaining END,
    empty = (c.state <> 1),
    lapsed = CASE WHEN c.state = 1 THEN c.lapsed ELSE c.lapsed + share END
  WHERE c.bucket = bucket AND c.account = account AND c.id = id
  RETURNING c.state = 1 INTO STRICT active;
  RETURN CASE WHEN active THEN 0 ELSE share END;
END;
$$;
