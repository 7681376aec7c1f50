-- The first moment at which the clocks of a zone show a local time. Where they are set back they show it twice,
-- and PostgreSQL means the second time. Where they are set forward over it, the moment of the change is meant.
CREATE OR REPLACE FUNCTION :"schema".first_moment(local timestamp, zone text) RETURNS timestamptz
LANGUAGE sql STABLE PARALLEL SAFE AS $$
  SELECT CASE WHEN ((x.later OPERATOR(pg_catalog.-) x.back) AT TIME ZONE zone) OPERATOR(pg_catalog.=) local
    THEN x.later OPERATOR(pg_catalog.-) x.back ELSE x.later END
  FROM (
    SELECT y.later, greatest(
      ((y.later OPERATOR(pg_catalog.-) interval '3 hours') AT TIME ZONE zone)
        OPERATOR(pg_catalog.+) interval '3 hours' OPERATOR(pg_catalog.-) local,
      interval '0') AS back
    FROM (SELECT local AT TIME ZONE zone AS later) y
  ) x
$$;
