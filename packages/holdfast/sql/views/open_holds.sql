-- Amounts that are put aside right now. "overdue" ones no longer count for the next operation on their
-- account, which books their expiry; so does sweep().
CREATE OR REPLACE VIEW :"schema".open_holds AS
SELECT a.book, a.key, a.scope,
  nullif(a.window_start, '-infinity') AS window_start,
  -- What settle, release and extend take.
  lpad(to_hex(h.bucket::integer), 3, '0') || '-' || h.id AS hold_id,
  h.amount, h.expires_at, h.expires_at <= statement_timestamp() AS overdue,
  h.operation_id, h.made_seq AS sequence, h.bucket, h.account
FROM :"schema".hold h
JOIN :"schema".account a ON a.bucket = h.bucket AND a.id = h.account
WHERE h.state = 0;
