-- Where grants do not add up, in a range of buckets; nothing if all is well. One statement, so one
-- snapshot.
CREATE OR REPLACE FUNCTION :"schema".check_grants(
  first_bucket smallint DEFAULT 0, last_bucket smallint DEFAULT 4095
) RETURNS TABLE (bucket smallint, account uuid, problem text)
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp SET jit = off
-- A range that is not known while planning is believed to hold few rows. Nested loops, and merges by the
-- bucket alone, would then compare all of an account with all of it.
SET enable_nestloop = off SET enable_mergejoin = off
AS $$
  WITH drawn AS (
    SELECT x.bucket, x.account, x.grant_id, sum(x.amount - x.returned) AS amount
    FROM allocation x
    WHERE x.bucket BETWEEN first_bucket AND last_bucket AND x.grant_id IS NOT NULL
    GROUP BY x.bucket, x.account, x.grant_id
  ), taken AS (
    SELECT x.bucket, x.account, x.seq, sum(x.amount - x.returned) AS amount
    FROM allocation x
    WHERE x.bucket BETWEEN first_bucket AND last_bucket AND NOT x.arrears
    GROUP BY x.bucket, x.account, x.seq
  )
  SELECT c.bucket, c.account, format('grant %s: of %s, %s remain, %s were used and %s lapsed', c.id,
    c.amount, c.remaining, coalesce(d.amount, 0), c.lapsed)
  FROM credit_grant c
  LEFT JOIN drawn d ON d.bucket = c.bucket AND d.account = c.account AND d.grant_id = c.id
  WHERE c.bucket BETWEEN first_bucket AND last_bucket
    AND c.amount <> c.remaining + coalesce(d.amount, 0) + c.lapsed
  UNION ALL
  SELECT c.bucket, c.account, format('grant %s: ended, and %s remain', c.id, c.remaining)
  FROM credit_grant c
  WHERE c.bucket BETWEEN first_bucket AND last_bucket AND c.state > 1 AND c.remaining > 0
  UNION ALL
  SELECT d.bucket, d.account, format('grant %s: was drawn from and does not exist', d.grant_id)
  FROM drawn d
  WHERE NOT EXISTS (
    SELECT FROM credit_grant c
    WHERE c.bucket = d.bucket AND c.account = d.account AND c.id = d.grant_id
  )
  UNION ALL
  SELECT b.bucket, b.account, format('the balance has %s, its active grants have %s, and %s for some features only',
    b.credited - b.debited - b.held, coalesce(g.remaining, 0), coalesce(g.apart, 0))
  FROM balance b
  LEFT JOIN (
    SELECT c.bucket, c.account,
      sum(c.remaining) FILTER (WHERE c.state = 1 AND open_to(c.note, NULL)) AS remaining,
      sum(c.remaining) FILTER (WHERE c.state = 1 AND NOT open_to(c.note, NULL)) AS apart
    FROM credit_grant c
    WHERE c.bucket BETWEEN first_bucket AND last_bucket
    GROUP BY c.bucket, c.account
  ) g ON g.bucket = b.bucket AND g.account = b.account
  WHERE b.bucket BETWEEN first_bucket AND last_bucket AND b.granted
    AND coalesce(g.remaining, 0) <> greatest(b.credited - b.debited - b.held - coalesce(g.apart, 0), 0)
  UNION ALL
  SELECT c.bucket, c.account, format('grant %s: falls due at %s, the balance at %s', c.id, c.due_at,
    coalesce(b.due_at::text, 'no time'))
  FROM credit_grant c
  LEFT JOIN balance b ON b.bucket = c.bucket AND b.account = c.account
  WHERE c.bucket BETWEEN first_bucket AND last_bucket
    AND (c.due_at < b.due_at OR b.granted IS NOT TRUE)
  UNION ALL
  -- What a hold took is noted to the unit, unless it was made before the account's first grant.
  SELECT h.bucket, h.account, format('hold %s: %s of it are noted, %s are due', h.id, t.amount,
    CASE h.state WHEN 0 THEN h.amount ELSE coalesce(h.settled, 0) END)
  FROM hold h
  JOIN taken t ON t.bucket = h.bucket AND t.account = h.account AND t.seq = h.made_seq
  WHERE h.bucket BETWEEN first_bucket AND last_bucket
    AND CASE h.state
      WHEN 0 THEN t.amount <> h.amount
      WHEN 1 THEN t.amount > coalesce(h.settled, 0)
      WHEN 4 THEN t.amount > coalesce(h.settled, 0)
      ELSE t.amount <> 0
    END
$$;
