-- Which of these ids are remembered for an owner, or are grants of these accounts. Versions before 0.2 took a UUID
-- that is not in lower case for any other text and remembered its hash; such operations and grants keep their ids.
CREATE OR REPLACE FUNCTION :"schema".earlier_ids(
  bucket smallint, owner uuid, accounts uuid[], ids uuid[]
) RETURNS text
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
  SELECT string_agg(u.id::text, ',')
  FROM unnest($4) AS u(id)
  WHERE EXISTS (SELECT FROM operation o WHERE o.bucket = $1 AND o.owner = $2 AND o.id = u.id)
    OR EXISTS (SELECT FROM credit_grant c WHERE c.bucket = $1 AND c.account = ANY ($3) AND c.id = u.id)
$$;
