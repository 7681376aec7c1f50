-- The 14 buckets of several histograms, added up; what is missing counts as nothing.
CREATE OR REPLACE FUNCTION :"schema".add_buckets(histograms jsonb[]) RETURNS bigint[]
LANGUAGE sql IMMUTABLE PARALLEL SAFE AS $$
  SELECT array_agg(coalesce(s.total, 0) ORDER BY b.bucket)
  FROM generate_series(0, 13) AS b(bucket)
  LEFT JOIN LATERAL (
    SELECT sum((h.histogram ->> b.bucket)::bigint)::bigint AS total
    FROM unnest(histograms) AS h(histogram)
  ) s ON true
$$;
