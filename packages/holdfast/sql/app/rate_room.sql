-- How many rows of a key may be claimed now, if at most so many may be claimed in any span of per_ms. Exact for
-- whoever holds the key's lock since before this statement began.
CREATE OR REPLACE FUNCTION :"schema".rate_room(limiter text, key text, most integer, per_ms bigint) RETURNS integer
LANGUAGE sql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
  SELECT most - coalesce((
    SELECT (SELECT count(*) FROM unnest(r.starts) AS s(at)
            WHERE s.at > clock_timestamp() - per_ms * interval '1 millisecond')
    FROM claim_rate r
    WHERE r.bucket = bucket_of(rate_room.key) AND r.limiter = rate_room.limiter AND r.key = rate_room.key), 0)::integer
$$;
