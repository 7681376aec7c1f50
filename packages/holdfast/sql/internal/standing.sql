-- An account as it stands, without a lock. Also a window that nobody has opened yet, if a limit was set for its
-- key: it will begin with that, and has no number.
CREATE OR REPLACE FUNCTION :"schema".standing(bucket smallint, account uuid, base uuid)
RETURNS SETOF :"schema".balance
LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT b.* FROM :"schema".balance b
  WHERE b.bucket OPERATOR(pg_catalog.=) standing.bucket AND b.account OPERATOR(pg_catalog.=) standing.account
  UNION ALL
  SELECT k.bucket, standing.account, 0, 0, 0, k.allowance, NULL, '-infinity', 'infinity', NULL, k.walled, true,
    false
  FROM :"schema".balance k
  WHERE k.bucket OPERATOR(pg_catalog.=) standing.bucket AND k.account OPERATOR(pg_catalog.=) standing.base AND k.pinned
    AND standing.base OPERATOR(pg_catalog.<>) standing.account AND NOT EXISTS (
      SELECT FROM :"schema".balance b
      WHERE b.bucket OPERATOR(pg_catalog.=) standing.bucket AND b.account OPERATOR(pg_catalog.=) standing.account
    )
$$;
