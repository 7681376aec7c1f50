-- What a movement was for; nothing if its month was dropped.
CREATE OR REPLACE FUNCTION :"schema".feature_of(bucket smallint, account uuid, seq bigint) RETURNS text
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp AS $$
  SELECT v.note ->> 'feature'
  FROM movement v
  WHERE v.bucket = feature_of.bucket AND v.account = feature_of.account AND v.seq = feature_of.seq
$$;
