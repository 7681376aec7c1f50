-- The tables that a move takes along and what rows of them need, as a JSON list of [table, what, type, needed]: columns,
-- of which one is needed if a row cannot be stored without a value for it, labels of enums, and partitions. The months
-- of movements are left out, because a move makes them.
CREATE OR REPLACE FUNCTION :"schema".move_shape(names text[]) RETURNS text
-- Types and bounds of partitions are written in it, which are to be the same on all servers.
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp SET timezone = 'UTC' SET datestyle = 'ISO'
SET quote_all_identifiers = off AS $$
  WITH moved AS (
    SELECT c.oid, c.relnamespace = current_schema()::regnamespace AS own, c.relname,
      CASE WHEN c.relnamespace = current_schema()::regnamespace THEN c.relname::text
        ELSE format('%s.%s', c.relnamespace::regnamespace, c.relname) END AS name
    FROM unnest(move_tables(names)) AS t
    JOIN pg_class c ON c.oid = t
  ), columns AS (
    SELECT m.relname, m.name, a.attnum, a.attname::text AS what, a.atttypid,
      format_type(a.atttypid, a.atttypmod) AS type, a.attnotnull AND NOT a.atthasdef AND a.attidentity = '' AS needed
    FROM moved m
    JOIN pg_attribute a ON a.attrelid = m.oid AND a.attnum > 0 AND NOT a.attisdropped AND a.attgenerated = ''
  ), needs AS (
    SELECT c.relname, c.name, c.attnum, c.what, c.type, c.needed FROM columns c
    UNION ALL
    SELECT c.relname, c.name, c.attnum, format('%s, label %s', c.what, e.enumlabel), 'label', false
    FROM columns c
    JOIN pg_type y ON y.oid = c.atttypid
    -- Of the type, of its elements, or of what a domain is one of.
    JOIN pg_enum e ON e.enumtypid IN (y.oid, y.typelem, y.typbasetype)
    UNION ALL
    SELECT m.relname, m.name, NULL, 'partition ' || (
      SELECT string_agg(pg_get_expr(c.relpartbound, c.oid), ' / ' ORDER BY o.at DESC)
      FROM pg_partition_ancestors(p.relid) WITH ORDINALITY AS o(relid, at)
      JOIN pg_class c ON c.oid = o.relid AND c.relispartition
    ), 'partition', false
    FROM moved m, pg_partition_tree(m.oid) AS p
    WHERE NOT m.own AND p.isleaf
  )
  SELECT json_agg(json_build_array(n.name, n.what, n.type, n.needed) ORDER BY n.relname, n.attnum, n.what)::text
  FROM needs n
$$;
