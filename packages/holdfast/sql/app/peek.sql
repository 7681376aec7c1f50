-- What an operation of this amount would find, without being one: the current window, the limit in
-- force, what is available once everything due is booked and a rate limit is refilled, and when the
-- amount would fit. As JSON. Changes nothing and locks nothing.
CREATE OR REPLACE FUNCTION :"schema".peek(
  bucket smallint, base uuid, amount bigint, allowance bigint, rolling boolean, unit text, zone text,
  every_us bigint
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
  since CONSTANT timestamptz := window_start(unit, zone, moment);
  account CONSTANT uuid := coalesce(window_account(base, since), base);
  b balance%ROWTYPE;
  allowed bigint;
  booked bigint;
  available bigint;
  retry bigint;
BEGIN
  SELECT x.* INTO b FROM standing(bucket, account, base) x;
  allowed := limit_of(b.allowance, b.pinned, b.refilled_at, allowance, every_us);
  b.credited := coalesce(b.credited, 0);
  b.debited := coalesce(b.debited, 0);
  b.held := coalesce(b.held, 0);
  booked := b.held;
  IF b.due_at <= moment THEN
    b.held := b.held - coalesce((
      SELECT sum(h.amount) FROM hold h
      WHERE h.bucket = bucket AND h.account = account AND h.state = 0 AND h.expires_at <= moment
    ), 0);
  END IF;
  available := can_give(b.credited, b.debited, b.held, b.allowance, b.pinned, b.refilled_at, allowance, every_us,
    moment);
  IF available < amount AND amount <= allowed THEN
    retry := CASE WHEN every_us IS NOT NULL
      THEN filled_until(b.refilled_at, amount - b.credited + b.debited + b.held, every_us)
      -- Counted from the top: what is due comes back first.
      ELSE retry_at(bucket, account, amount - allowed - b.credited + b.debited + booked, rolling, unit, zone,
        moment) END;
  END IF;
  RETURN json_build_object('limit', allowed::text, 'available', available::text,
    'held', b.held::text, 'used', (b.debited - b.credited)::text, 'retry', retry::text,
    'seq', coalesce(b.seq, 0)::text, 'pinned', coalesce(b.pinned, false),
    'start', micros(since)::text, 'end', micros(window_end(unit, zone, moment))::text);
END
$$;
