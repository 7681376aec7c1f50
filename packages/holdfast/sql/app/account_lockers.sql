-- The backends whose transactions have locked these accounts, as far as the rows tell.
CREATE OR REPLACE FUNCTION :"schema".account_lockers(
  buckets smallint[], bases uuid[], units text[], zones text[], refs text[]
) RETURNS integer[]
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET enable_seqscan = off
AS $$
  SELECT array_agg(DISTINCT k.pid)
  FROM line_accounts(buckets, bases, units, zones, refs) l
  JOIN balance b ON b.bucket = l.bucket AND b.account = l.account
  JOIN pg_locks k ON k.locktype = 'transactionid' AND k.granted AND k.transactionid = b.xmax
$$;
