-- True if this server is the primary of all these buckets; otherwise an error, see refuse_buckets.
-- STABLE: it sees the map as of the snapshot of the statement it stands in. A bucket is handed over only
-- after every transaction that may have such a snapshot from before has ended, so no lock is needed.
-- It runs with the rights and the search_path of the caller, because changing these would cost more than
-- all the rest; so every name in it is a full one.
CREATE OR REPLACE FUNCTION :"schema".here(buckets integer[]) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
DECLARE
  bits pg_catalog.bytea;
  wanted integer;
BEGIN
  IF pg_catalog.cardinality(buckets) OPERATOR(pg_catalog.=) 1 THEN
    PERFORM FROM :"schema".shard_here s
    WHERE pg_catalog.get_bit(s.served, buckets[1]) OPERATOR(pg_catalog.=) 1;
    IF FOUND THEN RETURN true; END IF;
  ELSE
    SELECT s.served INTO bits FROM :"schema".shard_here s;
    FOREACH wanted IN ARRAY buckets LOOP
      IF pg_catalog.get_bit(bits, wanted) OPERATOR(pg_catalog.=) 0 THEN bits := NULL; EXIT; END IF;
    END LOOP;
    IF bits IS NOT NULL THEN RETURN true; END IF;
  END IF;
  RETURN :"schema".refuse_buckets(buckets);
END
$$;
