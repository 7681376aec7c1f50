-- Grants with the names of their accounts. What is due but not yet booked is shown as it is booked:
-- the next operation on the account, or sweep(), books it.
CREATE OR REPLACE VIEW :"schema".credit_grants AS
SELECT a.book, a.key, a.scope, c.id AS grant_id, c.priority, c.amount, c.remaining, c.lapsed,
  -- Spent or held.
  c.amount - c.remaining - c.lapsed AS used,
  ('{pending,active,expired,voided}'::text[])[c.state + 1] AS state,
  c.effective_at, nullif(c.expires_at, 'infinity') AS expires_at,
  c.due_at <= statement_timestamp() AS overdue,
  nullif(c.rollover_limit, 0) AS rollover_limit, c.rollover_for, c.rolled_from, c.operation_id, c.note,
  c.bucket, c.account, c.note -> 'onlyFor' AS only_for
FROM :"schema".credit_grant c
JOIN :"schema".account a ON a.bucket = c.bucket AND a.id = c.account;
