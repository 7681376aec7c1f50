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
  since CONSTANT timestamptz := date_trunc(unit, moment, zone);
  account CONSTANT uuid := coalesce(window_account(base, since), base);
  b balance%ROWTYPE;
  allowed bigint;
  refilled timestamptz;
  credit bigint := 0;
  spare bigint;
  booked bigint;
  available bigint;
  retry bigint;
BEGIN
  SELECT x.* INTO b FROM balance x WHERE x.bucket = bucket AND x.account = account;
  IF b.account IS NULL AND unit IS NOT NULL THEN
    -- A window that nobody has used yet starts with the limit of the key.
    SELECT x.pinned, x.allowance INTO b.pinned, b.allowance
    FROM balance x WHERE x.bucket = bucket AND x.account = base;
  END IF;
  allowed := CASE WHEN b.pinned THEN b.allowance ELSE coalesce(allowance, b.allowance, 0) END;
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
  IF every_us IS NULL THEN
    available := b.credited - b.debited - b.held + allowed;
    IF available < amount AND amount <= allowed THEN
      -- Counted from the top: what is due comes back first.
      retry := retry_at(bucket, account, amount - allowed - b.credited + b.debited + booked, rolling,
        unit, zone, moment);
    END IF;
  ELSE
    -- The same as in apply(). What a full bucket was given back spills over.
    spare := allowed - b.credited + b.debited + b.held;
    credit := coalesce(
      floor(extract(epoch FROM moment - b.refilled_at) * 1000000 / every_us)::bigint, spare);
    IF credit >= spare THEN
      credit := spare;
      refilled := moment;
    ELSE
      refilled := b.refilled_at + credit * every_us * interval '1 microsecond';
    END IF;
    available := b.credited + credit - b.debited - b.held;
    IF available < amount AND amount <= allowed THEN
      retry := micros(refilled + (amount - available) * every_us * interval '1 microsecond');
    END IF;
  END IF;
  RETURN json_build_object('limit', allowed::text, 'available', available::text,
    'held', b.held::text, 'used', (b.debited - b.credited)::text, 'retry', retry::text,
    'seq', coalesce(b.seq, 0)::text, 'pinned', coalesce(b.pinned, false),
    'start', micros(since)::text, 'end', micros(window_end(unit, zone, moment))::text);
END
$$;
