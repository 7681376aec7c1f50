-- Whether this server is one of several and has not been compared with the others since it was started.
CREATE OR REPLACE FUNCTION :"schema".unconfirmed() RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN EXISTS (SELECT FROM :"schema".shard_self) AND NOT EXISTS (SELECT FROM :"schema".shard_here);
END
$$;
