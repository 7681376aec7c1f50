-- The holds of a range of buckets: each was made by one movement and ended by at most one, in the
-- state it says, and what is open is what movements put aside.
CREATE OR REPLACE FUNCTION :"schema".audit_holds(
  first smallint, last smallint, most integer, OUT found bigint, OUT problems json
)
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp SET jit = off
-- A range that is not known while planning is believed to hold few rows. Nested loops, and merges by the
-- bucket alone, would then compare all of an account with all of it.
SET enable_nestloop = off SET enable_mergejoin = off
AS $$
  WITH moved AS (
    -- A forgotten id may have been used again, for a hold of the same name.
    SELECT m.bucket, m.account, m.hold_id, m.seq >= coalesce(h.made_seq, 0) AS this_one,
      sum(m.hold) AS open,
      count(*) FILTER (WHERE m.hold > 0) AS made,
      count(*) FILTER (WHERE m.hold < 0) AS ended,
      count(*) FILTER (WHERE m.kind = 4 AND m.debit > 0) AS charged,
      max(m.seq) AS seq, max(m.at) AS at
    FROM movement m
    LEFT JOIN hold h ON h.bucket = m.bucket AND h.id = m.hold_id AND h.account = m.account
    WHERE m.bucket BETWEEN first AND last AND m.hold_id IS NOT NULL
      -- A late settlement that is ignored moves nothing.
      AND (m.hold <> 0 OR m.debit <> 0)
    GROUP BY 1, 2, 3, 4
  ), judged AS (
    SELECT coalesce(h.bucket, m.bucket) AS bucket, coalesce(h.account, m.account) AS account,
      coalesce(h.id, m.hold_id) AS hold, coalesce(m.seq, h.seq, h.made_seq) AS seq,
      CASE
        -- Ended and forgotten, or lost.
        WHEN h.id IS NULL AND m.ended = 1 AND m.at < z.operations THEN NULL
        WHEN h.id IS NULL THEN 'hold-missing'
        WHEN b.account IS NULL THEN 'hold-orphan'
        WHEN m.made > 1 OR m.ended > 1 OR m.charged > 1 THEN 'hold-twice'
        -- Movements up to the checkpoint are gone.
        WHEN coalesce(m.made, 0) = 0 AND h.made_seq > coalesce(c.seq, 0) THEN 'hold-orphan'
        WHEN h.state = 0 AND (m.ended > 0 OR m.charged > 0)
          OR h.state <> 0 AND coalesce(m.ended, 0) = 0
            AND (h.seq IS NULL OR h.state <> 4 AND h.seq > coalesce(c.seq, 0))
          OR h.state IN (2, 3) AND m.charged > 0
          OR m.made = 1 AND m.open <> CASE WHEN h.state = 0 THEN h.amount ELSE 0 END
          THEN 'hold-state'
      END AS problem
    FROM (SELECT * FROM hold WHERE bucket BETWEEN first AND last) h
    FULL JOIN moved m ON m.bucket = h.bucket AND m.account = h.account AND m.hold_id = h.id
      AND m.this_one
    LEFT JOIN balance b ON b.bucket = h.bucket AND b.account = h.account
    LEFT JOIN checkpoint c ON c.bucket = h.bucket AND c.account = h.account
    LEFT JOIN horizon z ON z.bucket = m.bucket
  ), named AS MATERIALIZED (
    SELECT * FROM judged WHERE problem IS NOT NULL
  )
  SELECT (SELECT count(*) FROM named),
    (SELECT json_agg(json_build_object('problem', n.problem, 'bucket', n.bucket, 'account', n.account,
      'seq', n.seq::text, 'hold', lpad(to_hex(n.bucket::integer), 3, '0') || '-' || n.hold))
     FROM (SELECT * FROM named LIMIT most) n)
$$;
