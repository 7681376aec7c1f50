-- How far a move has come on this server, as JSON; null if it does not know it. At the target: how many tables
-- it has, of how many, how often it failed, and whether the last row of the source has arrived. At the
-- source: how many bytes the target is behind.
CREATE OR REPLACE FUNCTION :"schema".read_move(move uuid) RETURNS text
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp AS $$
DECLARE
  name CONSTANT text := move_name(move);
  told text;
BEGIN
  SELECT json_build_object('id', m.id, 'buckets', m.buckets, 'source', m.source, 'target', m.target,
    'step', m.step, 'detail', m.detail, 'ended', m.ended_at IS NOT NULL,
    'published', EXISTS (SELECT FROM pg_publication p WHERE p.pubname = name),
    'subscribed', subscribed(move), 'tables', r.tables, 'ready', r.ready, 'failures', (
      SELECT x.apply_error_count + x.sync_error_count FROM pg_stat_subscription_stats x
      WHERE x.subname = name),
    'behind', (SELECT pg_wal_lsn_diff(pg_current_wal_lsn(), s.confirmed_flush_lsn)
      FROM pg_replication_slots s WHERE s.slot_name = name),
    'arrived', EXISTS (SELECT FROM shard_end e WHERE e.move = m.id),
    'versions', (SELECT json_agg(s.version ORDER BY s.bucket) FROM shard_map s
      WHERE s.bucket = ANY (m.buckets)))
  INTO told
  FROM shard_move m
  CROSS JOIN LATERAL (
    SELECT count(*) AS tables, count(*) FILTER (WHERE x.srsubstate = 'r') AS ready
    FROM pg_subscription s
    JOIN pg_database d ON d.oid = s.subdbid AND d.datname = current_database()
    JOIN pg_subscription_rel x ON x.srsubid = s.oid
    WHERE s.subname = name
  ) r
  WHERE m.id = move;
  RETURN told;
END;
$$;
