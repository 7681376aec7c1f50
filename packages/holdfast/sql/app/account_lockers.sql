-- The backends whose transactions have locked these accounts, as far as the rows tell.
CREATE OR REPLACE FUNCTION :"schema".account_lockers(
  buckets smallint[], bases uuid[], units text[], zones text[], refs text[]
) RETURNS integer[]
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
-- A list is estimated at a thousand lines: a join of two sets would read every account.
SET enable_seqscan = off SET enable_hashjoin = off SET enable_mergejoin = off
AS $$
  -- First the rows, each by its key; who holds them is looked for afterwards.
  WITH holder AS MATERIALIZED (
    SELECT b.xmax AS id
    FROM line_accounts(buckets, bases, units, zones, refs) l
    JOIN balance b ON b.bucket = l.bucket AND b.account = l.account
  )
  SELECT array_agg(DISTINCT k.pid)
  FROM holder h
  JOIN pg_locks k ON k.locktype = 'transactionid' AND k.granted AND k.transactionid = h.id
$$;
