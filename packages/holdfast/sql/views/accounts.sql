-- Who the accounts are; what they stand at is in balances.
CREATE OR REPLACE VIEW :"schema".accounts AS
SELECT a.book, a.key, a.scope,
  nullif(a.window_start, '-infinity') AS window_start,
  nullif(a.window_end, 'infinity') AS window_end,
  a.opened_at, a.bucket, a.id AS account
FROM :"schema".account a;
