-- Which account each line is about, by its number: that of a hold for a line that names one, the current window where
-- there are windows, or the key's own.
CREATE OR REPLACE FUNCTION :"schema".line_accounts(
  buckets smallint[], bases uuid[], units text[], zones text[], refs text[],
  OUT line integer, OUT bucket smallint, OUT account uuid
) RETURNS SETOF record
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp AS $$
  SELECT u.ord, coalesce(h.bucket, u.bucket), coalesce(h.account, CASE WHEN u.unit IS NULL THEN u.base
    ELSE window_account(u.base, window_start(u.unit, u.zone, clock_timestamp())) END)
  FROM unnest(buckets, bases, units, zones, refs) WITH ORDINALITY AS u(bucket, base, unit, zone, ref, ord)
  LEFT JOIN hold h ON u.ref ~ '^[0-9a-f]{3}:' AND h.bucket = ('x' || left(u.ref, 3))::bit(12)::integer::smallint
    AND h.id = substr(u.ref, 5)::uuid
  ORDER BY 2, 3
$$;
