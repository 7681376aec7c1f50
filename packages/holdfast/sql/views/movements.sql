-- Everything that ever changed a balance. Ask for a book and key, or for bucket and account, and page
-- by sequence; other conditions read it all.
CREATE OR REPLACE VIEW :"schema".movements AS
SELECT a.book, a.key, a.scope,
  nullif(a.window_start, '-infinity') AS window_start,
  nullif(a.window_end, 'infinity') AS window_end,
  m.seq AS sequence, m.at,
  -- The words of movement_kind(), which readers of this view may not call.
  ('{credit,debit,hold,settle,release,expire,refund,grant,lapse,void,adjust,opening,return,limit,transfer-out,transfer-in}'::text[])[m.kind]
    AS kind,
  m.credit, m.debit, m.hold, m.credited, m.debited, m.held, m.allowance,
  m.credited - m.debited - m.held + m.allowance AS available,
  m.operation_id, m.hold_id, m.grant_id, m.note, m.bucket, m.account
FROM :"schema".movement m
JOIN :"schema".account a ON a.bucket = m.bucket AND a.id = m.account;
