-- The operation ids that are remembered, one row per line: what was applied, how much of it was given
-- back, and refusals that are repeated for a while. Book and key of a line in another scope than the
-- operation's own are in movements.
CREATE OR REPLACE VIEW :"schema".operations AS
SELECT a.book, a.key, a.scope, m.operation_id, o.line,
  ('{credit,debit,hold,settle,release,expire,refund,grant,lapse,void,adjust,opening,return,limit,transfer-out,transfer-in}'::text[])[o.kind]
    AS kind,
  o.amount, o.returned, o.seq AS sequence, o.at, o.refused_until, o.id, o.bucket, o.account
FROM :"schema".operation o
LEFT JOIN :"schema".account a ON a.bucket = o.bucket AND a.id = o.account
LEFT JOIN :"schema".movement m
  ON m.bucket = o.bucket AND m.account = o.account AND m.seq = o.seq AND m.at = o.at;
