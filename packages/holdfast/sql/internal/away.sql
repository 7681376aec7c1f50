-- Whether this server is one of several and another one has this bucket, or is about to, or may have it because
-- nobody has asked the others yet. What goes over all rows of a server passes them over: they are half copied, or
-- were handed over and not yet deleted. Asked for every row, so it is as cheap as here(), and like it has full names.
CREATE OR REPLACE FUNCTION :"schema".away(bucket smallint) RETURNS boolean
LANGUAGE plpgsql STABLE AS $$
BEGIN
  PERFORM FROM :"schema".shard_here s WHERE pg_catalog.get_bit(s.served, bucket) OPERATOR(pg_catalog.=) 1;
  RETURN NOT FOUND AND EXISTS (SELECT FROM :"schema".shard_self);
END
$$;
