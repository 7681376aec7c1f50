-- The operation ids of a range of buckets: each that was applied has its movement, and each movement
-- that somebody asked for has its id, as far back as ids are remembered. What was applied twice is a
-- movement without an id. A transfer gives what it takes.
CREATE OR REPLACE FUNCTION :"schema".audit_operations(
  first smallint, last smallint, most integer, OUT found bigint, OUT problems json
)
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp SET jit = off
-- A range that is not known while planning is believed to hold few rows. Nested loops, and merges by the
-- bucket alone, would then compare all of an account with all of it.
SET enable_nestloop = off SET enable_mergejoin = off
AS $$
  WITH unpaired AS MATERIALIZED (
    SELECT o.bucket AS home, o.account AS known_account, o.seq AS known_seq, o.at AS known_at,
      m.bucket, m.account, m.seq, m.operation_id
    FROM (
      SELECT * FROM operation WHERE bucket BETWEEN first AND last AND seq IS NOT NULL
    ) o
    FULL JOIN (
      SELECT * FROM movement
      WHERE bucket BETWEEN first AND last AND kind IN (1, 2, 3, 7, 8, 10, 11, 12, 13, 14, 15, 16)
    ) m ON m.bucket = o.bucket AND m.account = o.account AND m.seq = o.seq
    LEFT JOIN horizon z ON z.bucket = m.bucket
    LEFT JOIN checkpoint c ON c.bucket = o.bucket AND c.account = o.account
    WHERE m.seq IS NULL AND o.seq > coalesce(c.seq, 0) OR o.kind <> m.kind OR o.at <> m.at
      -- Grants that begin, and the windows of a limit, move without an id of their own.
      OR o.id IS NULL AND m.kind IN (1, 2, 3, 7, 11, 12, 13, 15, 16)
        AND m.at >= coalesce(z.operations, '-infinity')
  ), elsewhere AS (
    -- An operation over several scopes is remembered in the bucket of one of them.
    SELECT u.known_account AS account, u.known_seq AS seq
    FROM unpaired u
    JOIN account a ON a.id = u.known_account
    JOIN movement m ON m.bucket = a.bucket AND m.account = a.id AND m.seq = u.known_seq
      AND m.at = u.known_at
    WHERE u.seq IS NULL
    UNION ALL
    SELECT u.account, u.seq
    FROM unpaired u
    JOIN operation o ON o.account = u.account AND o.seq = u.seq
    WHERE u.known_seq IS NULL
  ), named AS MATERIALIZED (
    SELECT coalesce(u.bucket, u.home) AS bucket, coalesce(u.account, u.known_account) AS account,
      coalesce(u.seq, u.known_seq) AS seq, u.operation_id,
      CASE WHEN u.seq IS NULL THEN 'movement-missing' WHEN u.known_seq IS NULL
        THEN 'operation-missing' ELSE 'operation-differs' END AS problem
    FROM unpaired u
    LEFT JOIN elsewhere e ON e.account = coalesce(u.account, u.known_account)
      AND e.seq = coalesce(u.seq, u.known_seq)
    WHERE e.account IS NULL
    UNION ALL
    SELECT o.bucket, (array_agg(o.account ORDER BY o.line))[1], (array_agg(o.seq ORDER BY o.line))[1], NULL, 'transfer'
    FROM operation o
    LEFT JOIN horizon z ON z.bucket = o.bucket
    WHERE o.bucket BETWEEN first AND last AND o.kind IN (15, 16) AND o.seq IS NOT NULL
    GROUP BY o.bucket, o.owner, o.id
    HAVING sum(CASE o.kind WHEN 15 THEN o.amount ELSE -o.amount END) <> 0
      -- Of those at the horizon, a line may be forgotten already.
      AND min(o.at) > coalesce(max(z.operations) + interval '1 day', '-infinity')
  )
  SELECT (SELECT count(*) FROM named),
    (SELECT json_agg(json_build_object('problem', n.problem, 'bucket', n.bucket, 'account', n.account,
      'seq', n.seq::text, 'operation', n.operation_id))
     FROM (SELECT * FROM named LIMIT most) n)
$$;
