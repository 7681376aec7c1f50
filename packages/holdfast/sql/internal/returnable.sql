-- What is left to give back of an operation on one account, by line: debits, downward corrections, and what a hold
-- was settled with. No row if it took nothing there.
CREATE OR REPLACE FUNCTION :"schema".returnable(
  home smallint, owner uuid, id uuid, bucket smallint, account uuid,
  OUT place tid, OUT seq bigint, OUT rest bigint
) RETURNS SETOF record
LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT o.ctid, o.seq,
    CASE WHEN o.kind = 3 THEN coalesce(h.settled, 0) ELSE abs(o.amount) END - o.returned
  FROM :"schema".operation o
  LEFT JOIN :"schema".hold h ON o.kind = 3 AND h.bucket = returnable.bucket AND h.account = returnable.account
    AND h.id = :"schema".hash_name(concat(o.owner, ':', o.id))
  WHERE o.bucket = home AND o.owner = returnable.owner AND o.id = returnable.id
    AND o.account = returnable.account AND o.seq IS NOT NULL
    AND (o.kind IN (2, 3) OR o.kind = 11 AND o.amount < 0)
  ORDER BY o.line
$$;
