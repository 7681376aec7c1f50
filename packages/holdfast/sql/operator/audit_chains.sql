-- The accounts of a range of buckets: every movement follows from the one before it, the balance is
-- what the last one left, its holds add up, and the names belong to the ids.
CREATE OR REPLACE FUNCTION :"schema".audit_chains(
  first smallint, last smallint, most integer,
  OUT accounts bigint, OUT movements bigint, OUT found bigint, OUT problems json
)
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp SET jit = off
-- A range that is not known while planning is believed to hold few rows. Nested loops, and merges by the
-- bucket alone, would then compare all of an account with all of it.
SET enable_nestloop = off SET enable_mergejoin = off
AS $$
  WITH chain AS (
    SELECT m.bucket, m.account, m.seq, m.kind, m.at, m.credited, m.debited, m.held, m.allowance,
      m.seq <> coalesce(lag(m.seq) OVER w, c.seq, 0) + 1 AS gap,
      m.credited <> coalesce(lag(m.credited) OVER w, c.credited, 0) + m.credit
        OR m.debited <> coalesce(lag(m.debited) OVER w, c.debited, 0) + m.debit
        OR m.held <> coalesce(lag(m.held) OVER w, c.held, 0) + m.hold AS broken,
      m.at < coalesce(lag(m.at) OVER w, c.at) AS back,
      -- Debits and holds are not made unchecked, unless they say so; what is, is an adjustment.
      m.kind IN (2, 3, 15) AND m.credited - m.debited - m.held + m.allowance < 0
        AND coalesce(m.note ->> 'overage', '') <> 'true' AS beyond,
      lead(m.seq) OVER w IS NULL AS ends
    FROM movement m
    LEFT JOIN checkpoint c ON c.bucket = m.bucket AND c.account = m.account
    WHERE m.bucket BETWEEN first AND last
    WINDOW w AS (PARTITION BY m.bucket, m.account ORDER BY m.seq, m.at)
  ), moved AS (
    SELECT bucket, account, count(*) AS movements,
      min(seq) FILTER (WHERE gap) AS gap,
      min(seq) FILTER (WHERE broken) AS broken,
      min(seq) FILTER (WHERE back) AS back,
      min(seq) FILTER (WHERE beyond) AS beyond,
      min(seq) FILTER (WHERE credited - debited - held + allowance < 0) AS below,
      max(seq) FILTER (WHERE ends) AS seq, max(at) FILTER (WHERE ends) AS at,
      max(credited) FILTER (WHERE ends) AS credited, max(debited) FILTER (WHERE ends) AS debited,
      max(held) FILTER (WHERE ends) AS held, max(allowance) FILTER (WHERE ends) AS allowance
    FROM chain
    GROUP BY bucket, account
  ), kept AS (
    -- What the balance has to be: the last movement, or the checkpoint if none is kept.
    SELECT coalesce(m.bucket, c.bucket) AS bucket, coalesce(m.account, c.account) AS account,
      m.movements, m.gap, m.broken, m.back, m.beyond, m.below, coalesce(m.seq, c.seq) AS seq,
      coalesce(m.at, c.at) AS at, coalesce(m.credited, c.credited) AS credited,
      coalesce(m.debited, c.debited) AS debited, coalesce(m.held, c.held) AS held,
      coalesce(m.allowance, c.allowance) AS allowance
    FROM moved m
    FULL JOIN (SELECT * FROM checkpoint WHERE bucket BETWEEN first AND last) c
      ON c.bucket = m.bucket AND c.account = m.account
  ), open AS (
    SELECT h.bucket, h.account, sum(h.amount) AS held, min(h.expires_at) AS expires_at
    FROM hold h
    WHERE h.state = 0 AND h.bucket BETWEEN first AND last
    GROUP BY h.bucket, h.account
  ), judged AS MATERIALIZED (
    SELECT coalesce(b.bucket, k.bucket) AS bucket, coalesce(b.account, k.account) AS account,
      k.movements, p.problem, p.seq
    FROM (SELECT * FROM balance WHERE bucket BETWEEN first AND last) b
    FULL JOIN kept k ON k.bucket = b.bucket AND k.account = b.account
    LEFT JOIN open o ON o.bucket = b.bucket AND o.account = b.account
    LEFT JOIN account a ON a.bucket = b.bucket AND a.id = b.account
    LEFT JOIN LATERAL (
      VALUES
        ('gap', k.gap),
        ('chain', k.broken),
        ('time', k.back),
        ('bound', CASE WHEN b.walled THEN k.below ELSE k.beyond END),
        ('balance-missing', CASE WHEN b.account IS NULL THEN k.seq END),
        ('projection', CASE WHEN b.account IS NOT NULL AND (
            b.seq <> coalesce(k.seq, 0) OR b.credited <> coalesce(k.credited, 0)
            OR b.debited <> coalesce(k.debited, 0) OR b.held <> coalesce(k.held, 0)
            OR b.allowance <> coalesce(k.allowance, b.allowance) OR b.moved_at < k.at
          ) THEN b.seq END),
        ('held', CASE WHEN b.held <> coalesce(o.held, 0) THEN b.seq END),
        ('due', CASE WHEN b.due_at > o.expires_at THEN b.seq END),
        ('account-missing', CASE WHEN b.account IS NOT NULL AND a.id IS NULL THEN b.seq END),
        ('account-name', CASE WHEN a.bucket <> bucket_of(a.scope)
            OR a.id <> CASE WHEN a.window_start = '-infinity' THEN key_account(a.scope, a.book, a.key)
              ELSE window_account(key_account(a.scope, a.book, a.key), a.window_start) END
          THEN b.seq END)
    ) p(problem, seq) ON p.seq IS NOT NULL
  ), lost AS (
    SELECT a.bucket, a.id AS account, 'balance-missing' AS problem, NULL::bigint AS seq
    FROM account a
    LEFT JOIN balance b ON b.bucket = a.bucket AND b.account = a.id
    WHERE a.bucket BETWEEN first AND last AND b.account IS NULL
  ), named AS (
    SELECT bucket, account, problem, seq FROM judged WHERE problem IS NOT NULL
    UNION
    SELECT bucket, account, problem, seq FROM lost
  )
  SELECT
    (SELECT count(DISTINCT (bucket, account)) FROM judged),
    (SELECT coalesce(sum(m.movements), 0) FROM moved m),
    (SELECT count(*) FROM named),
    (SELECT json_agg(json_build_object('problem', n.problem, 'bucket', n.bucket, 'account', n.account,
      'seq', n.seq::text)) FROM (SELECT * FROM named LIMIT most) n)
$$;
