-- HF003 if one of these tables, or of their partitions, cannot be moved as a whole, or not without doing more than that.
CREATE OR REPLACE FUNCTION :"schema".refuse_tables(moved regclass[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  wrong record;
BEGIN
  SELECT x.* INTO wrong
  FROM (
    SELECT c.oid::regclass AS name, CASE
      WHEN c.relkind = 'f' THEN 'is on another server'
      WHEN c.relpersistence <> 'p' THEN 'is not logged, so that its rows are not sent'
      -- Rows of these are in the other table as well, and would be neither sent with it nor deleted.
      WHEN c.relkind = 'r' AND EXISTS (SELECT FROM pg_inherits i WHERE i.inhparent = c.oid)
        THEN 'has tables that inherit from it'
      WHEN EXISTS (SELECT FROM pg_trigger g WHERE g.tgrelid = c.oid AND g.tgenabled IN ('A', 'R'))
        OR EXISTS (SELECT FROM pg_rewrite w WHERE w.ev_class = c.oid AND w.ev_enabled IN ('A', 'R'))
        THEN 'has a trigger or rule that would fire for rows that are moved (ENABLE ALWAYS, ENABLE REPLICA)'
      WHEN row_security_active(c.oid) THEN 'may hide rows from this role by row-level security'
    END AS why
    FROM unnest(moved) AS t
    -- Nothing for a table that has no partitions.
    LEFT JOIN LATERAL pg_partition_tree(t) AS p ON true
    JOIN pg_class c ON c.oid = coalesce(p.relid, t)
  ) x
  WHERE x.why IS NOT NULL ORDER BY x.name::text LIMIT 1;
  IF FOUND THEN
    RAISE EXCEPTION '% %', wrong.name, wrong.why USING ERRCODE = 'HF003';
  END IF;
END;
$$;
