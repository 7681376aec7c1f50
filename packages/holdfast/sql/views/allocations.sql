-- Which grant paid how much of which movement. Without a grant: an overdraft, or more than was held.
-- "arrears" were paid for what the account owed before.
CREATE OR REPLACE VIEW :"schema".allocations AS
SELECT a.book, a.key, a.scope, x.seq AS sequence, x.ordinal, x.grant_id, x.amount, x.returned,
  x.arrears, x.bucket, x.account
FROM :"schema".allocation x
JOIN :"schema".account a ON a.bucket = x.bucket AND a.id = x.account;
