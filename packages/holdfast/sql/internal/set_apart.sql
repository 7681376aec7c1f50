-- How much of an account's active grants is for other features than this one: all that is restricted, if it is none.
CREATE OR REPLACE FUNCTION :"schema".set_apart(bucket smallint, account uuid, feature text) RETURNS bigint
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp AS $$
  SELECT coalesce(sum(c.remaining), 0)::bigint
  FROM credit_grant c
  WHERE c.bucket = set_apart.bucket AND c.account = set_apart.account AND c.state = 1 AND NOT c.empty
    -- By the index credit_grant_restricted: an account may have thousands that are not.
    AND jsonb_exists(c.note, 'onlyFor') AND NOT open_to(c.note, feature)
$$;
