-- Makes a grant without expiry of credit that came without one: of what an account had before its
-- first grant, and of credits, adjustments and openings on an account that has some.
CREATE OR REPLACE FUNCTION :"schema".take_up(
  bucket smallint, account uuid, seq bigint, amount bigint, operation_id text, moment timestamptz
) RETURNS void
LANGUAGE sql SET search_path = :"schema", pg_temp AS $$
  INSERT INTO credit_grant (bucket, account, id, priority, ordinal, amount, remaining, effective_at,
    expires_at, state, operation_id)
  VALUES (bucket, account, hash_name(concat(account, ':', seq)), 50, seq, amount, amount, moment,
    'infinity', 1, coalesce(operation_id, ''))
  -- A movement that gives back what several lines took does so line by line.
  ON CONFLICT (bucket, account, id) DO UPDATE
  SET amount = credit_grant.amount + excluded.amount, remaining = credit_grant.remaining + excluded.remaining,
    empty = false
$$;
