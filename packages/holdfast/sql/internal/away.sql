-- Whether this server is one of several and another one has this bucket, or is about to. What goes over
-- all rows of a server passes them over: they are half copied, or were handed over and not yet deleted.
CREATE OR REPLACE FUNCTION :"schema".away(bucket smallint) RETURNS boolean
LANGUAGE sql STABLE AS $$
  SELECT EXISTS (
    SELECT FROM :"schema".shard_map m WHERE m.bucket = away.bucket AND (m.leaving OR NOT m.here)
  )
$$;
