-- HF003 if rows would lose what they refer to, or be left behind by it, when these tables go with their buckets:
-- nobody checks foreign keys while rows are copied and deleted. A table that has no buckets may be referred to: it has
-- to be the same on all primaries.
CREATE OR REPLACE FUNCTION :"schema".refuse_foreign_keys(moved regclass[]) RETURNS void
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp SET quote_all_identifiers = off AS $$
DECLARE
  wrong record;
BEGIN
  FOR wrong IN
    SELECT k.child::regclass AS child, k.parent::regclass AS parent, k.child = ANY (moved) AS has_child,
      k.parent = ANY (moved) AS has_parent
    FROM (
      SELECT c.conkey, c.confkey, coalesce(pg_partition_root(c.conrelid)::oid, c.conrelid) AS child,
        coalesce(pg_partition_root(c.confrelid)::oid, c.confrelid) AS parent,
        (SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = c.conrelid AND a.attname = 'bucket') AS from_bucket,
        (SELECT a.attnum FROM pg_attribute a WHERE a.attrelid = c.confrelid AND a.attname = 'bucket') AS to_bucket
      FROM pg_constraint c WHERE c.contype = 'f' AND c.conparentid = 0
    ) k
    WHERE (k.parent = ANY (moved) OR (k.child = ANY (moved) AND k.to_bucket IS NOT NULL))
      AND NOT (
        k.child = ANY (moved) AND k.parent = ANY (moved)
        -- A row and what it refers to are in one bucket.
        AND EXISTS (
          SELECT FROM unnest(k.conkey, k.confkey) AS p(a, b) WHERE p.a = k.from_bucket AND p.b = k.to_bucket
        )
      )
    ORDER BY 1, 2
  LOOP
    IF wrong.has_child AND wrong.has_parent THEN
      RAISE EXCEPTION 'the foreign key from % to % does not include the bucket', wrong.child, wrong.parent
        USING ERRCODE = 'HF003';
    END IF;
    RAISE EXCEPTION 'a foreign key leads from % to %, and only one of them is to be moved', wrong.child, wrong.parent
      USING ERRCODE = 'HF003';
  END LOOP;
END;
$$;
