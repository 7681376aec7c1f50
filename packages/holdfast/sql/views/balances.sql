-- What every account stands at. Of a book with calendar windows, each window is a row; its limit
-- alone, if one was set for the key, is a row without a window.
CREATE OR REPLACE VIEW :"schema".balances AS
SELECT a.book, a.key, a.scope,
  nullif(a.window_start, '-infinity') AS window_start,
  nullif(a.window_end, 'infinity') AS window_end,
  b.credited, b.debited, b.held, b.allowance,
  b.credited - b.debited - b.held + b.allowance AS available,
  b.pinned AS limit_is_set,
  b.seq AS sequence,
  nullif(b.moved_at, '-infinity') AS moved_at,
  -- Earlier than now: something has fallen due that is not booked yet; see sweep().
  nullif(b.due_at, 'infinity') AS due_at,
  a.opened_at, b.bucket, b.account
FROM :"schema".balance b
JOIN :"schema".account a ON a.bucket = b.bucket AND a.id = b.account;
