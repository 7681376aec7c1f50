-- Which operations are known, line by line: true if it was applied, or refused and that is still remembered; false if
-- it was refused and the next answer may take that one's place; null if nobody has heard of it.
CREATE OR REPLACE FUNCTION :"schema".known_ids(
  lines integer[], homes smallint[], buckets smallint[], owners uuid[], ids uuid[], moment timestamptz
) RETURNS boolean[]
LANGUAGE plpgsql STABLE
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  known boolean[];
BEGIN
  SELECT array_agg(o.holds ORDER BY u.ord) INTO known
  FROM (
    SELECT x.ord, owners[x.line] AS owner, ids[x.line] AS id,
      coalesce(homes[x.line], buckets[x.line]) AS home
    FROM unnest(lines) WITH ORDINALITY AS x(line, ord)
  ) u
  LEFT JOIN LATERAL (
    SELECT o.refused_until IS NULL OR o.refused_until > moment AS holds FROM operation o
    WHERE o.bucket = u.home AND o.owner = u.owner AND o.id = u.id AND o.line = 0
    OFFSET 0
  ) o ON true;
  RETURN known;
END;
$$;
