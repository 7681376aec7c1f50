-- The moves that this server knows and that have not ended, and the last ones that have, as JSON.
CREATE OR REPLACE FUNCTION :"schema".list_moves(ended integer) RETURNS text
LANGUAGE sql STABLE SET search_path = :"schema", pg_temp AS $$
  SELECT coalesce(json_agg(json_build_object('id', m.id, 'buckets', m.buckets, 'source', m.source,
    'target', m.target, 'step', m.step, 'ended', m.ended_at IS NOT NULL,
    'startedAt', m.started_at, 'changedAt', m.changed_at) ORDER BY m.started_at), '[]')::text
  FROM (
    (SELECT * FROM shard_move WHERE ended_at IS NULL)
    UNION ALL
    (SELECT * FROM shard_move WHERE ended_at IS NOT NULL ORDER BY ended_at DESC LIMIT list_moves.ended)
  ) m
$$;
