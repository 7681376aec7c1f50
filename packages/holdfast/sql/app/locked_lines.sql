-- Which lines are about an account that a transaction under way has changed or locked, and by which: "line:transaction",
-- parted by commas. Of an account that is not there, perhaps because somebody is about to open it, the transaction is 0.
-- Takes no lock itself.
CREATE OR REPLACE FUNCTION :"schema".locked_lines(
  buckets smallint[], bases uuid[], units text[], zones text[], refs text[]
) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
-- A list is estimated at a thousand lines: a join of two sets would read every account.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  SELECT string_agg(concat(l.line, ':', coalesce(b.xmax::text, '0')), ',')
  FROM line_accounts(buckets, bases, units, zones, refs) l
  LEFT JOIN balance b ON b.bucket = l.bucket AND b.account = l.account
  WHERE b.account IS NULL OR b.xmax::text IN (
    SELECT k.transactionid::text FROM pg_locks k WHERE k.locktype = 'transactionid' AND k.granted
  )
$$;
