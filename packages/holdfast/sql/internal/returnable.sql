-- What is left to give back of an operation on one account, by line: debits, downward corrections, and what a hold
-- was settled with. No row if it took nothing there.
CREATE OR REPLACE FUNCTION :"schema".returnable(
  home smallint, owner uuid, id uuid, bucket smallint, account uuid,
  OUT place tid, OUT seq bigint, OUT rest bigint
) RETURNS SETOF record
LANGUAGE sql STABLE ROWS 1 AS $$
  SELECT o.ctid, o.seq,
    CASE WHEN o.kind OPERATOR(pg_catalog.=) 3 THEN coalesce(h.settled, 0) ELSE pg_catalog.abs(o.amount) END
      OPERATOR(pg_catalog.-) o.returned
  FROM :"schema".operation o
  LEFT JOIN :"schema".hold h
    ON o.kind OPERATOR(pg_catalog.=) 3 AND h.bucket OPERATOR(pg_catalog.=) returnable.bucket
    AND h.account OPERATOR(pg_catalog.=) returnable.account
    AND h.id OPERATOR(pg_catalog.=) :"schema".hash_name(pg_catalog.concat(o.owner, ':', o.id))
  WHERE o.bucket OPERATOR(pg_catalog.=) home AND o.owner OPERATOR(pg_catalog.=) returnable.owner
    AND o.id OPERATOR(pg_catalog.=) returnable.id AND o.account OPERATOR(pg_catalog.=) returnable.account
    AND o.seq IS NOT NULL
    AND (o.kind OPERATOR(pg_catalog.=) ANY ('{2,3}')
      OR o.kind OPERATOR(pg_catalog.=) 11 AND o.amount OPERATOR(pg_catalog.<) 0)
  ORDER BY o.line
$$;
