-- In how many ranges of buckets an audit is best done: enough to show progress, few enough to not read
-- every page too often. By what the planner believes the sizes to be, which costs nothing.
CREATE OR REPLACE FUNCTION :"schema".audit_steps() RETURNS integer
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp AS $$
  SELECT least(256, greatest(8, ceil(sum(greatest(c.reltuples, c.relpages * 60)) / 500000)))::integer
  FROM pg_partition_tree('movement') t
  JOIN pg_class c ON c.oid = t.relid
  WHERE t.isleaf
$$;
