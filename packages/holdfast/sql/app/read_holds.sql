-- The open holds of a key, in all its windows, as a JSON array: those that expire first come first.
CREATE OR REPLACE FUNCTION :"schema".read_holds(
  bucket smallint, book text, key text, scope text, most integer
) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  moment CONSTANT timestamptz := clock_timestamp();
  room CONSTANT integer := greatest(1, least(coalesce(most, 1), 1000));
BEGIN
  RETURN coalesce((
    SELECT json_agg(json_build_object('holdId', lpad(to_hex(bucket::integer), 3, '0') || '-' || x.id,
        'amount', x.amount::text, 'expires', micros(x.expires_at)::text,
        'overdue', x.expires_at <= moment, 'operation', x.operation_id, 'seq', x.made_seq::text,
        'start', micros(x.window_start)::text, 'end', micros(x.window_end)::text)
      ORDER BY x.expires_at, x.id)
    FROM (
      SELECT h.*, a.window_start, a.window_end
      FROM account a
      CROSS JOIN LATERAL (
        SELECT h.* FROM hold h
        WHERE h.bucket = bucket AND h.account = a.id AND h.state = 0
        ORDER BY h.expires_at
        LIMIT room
      ) h
      WHERE a.book = book AND a.key = key AND a.scope = scope AND a.bucket = bucket
      ORDER BY h.expires_at, h.id
      LIMIT room
    ) x
  ), '[]');
END
$$;
