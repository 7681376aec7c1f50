-- The 14 buckets of several histograms, added up; what is missing counts as nothing.
CREATE OR REPLACE FUNCTION :"schema".add_buckets(histograms jsonb[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT pg_catalog.array_agg(coalesce(s.total, 0) ORDER BY b.bucket)
  FROM pg_catalog.generate_series(0, 13) AS b(bucket)
  LEFT JOIN LATERAL (
    SELECT pg_catalog.sum((h.histogram OPERATOR(pg_catalog.->>) b.bucket)::bigint)::bigint AS total
    FROM pg_catalog.unnest(histograms) AS h(histogram)
  ) s ON true
$$;
