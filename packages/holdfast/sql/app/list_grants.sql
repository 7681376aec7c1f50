-- The grants of one account in burn order, as JSON. What is due falls due first, so that the list says
-- what the next operation will find. Without "ended": those of which something is left, and those to
-- come.
CREATE OR REPLACE FUNCTION :"schema".list_grants(
  bucket smallint, account uuid, ended boolean, most integer
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
AS $$
#variable_conflict use_variable
DECLARE
  answer text;
BEGIN
  PERFORM book_due(bucket, account);
  SELECT json_agg(json_build_object(
    'id', x.id, 'operationId', x.operation_id, 'amount', x.amount::text,
    'remaining', x.remaining::text, 'lapsed', x.lapsed::text, 'priority', x.priority,
    'effectiveAt', micros(x.effective_at)::text, 'expiresAt', micros(x.expires_at)::text,
    'state', x.state, 'rolledFrom', x.rolled_from, 'note', x.note
  ) ORDER BY x.priority, x.expires_at, x.ordinal, x.id)
  INTO answer
  FROM (
    SELECT c.* FROM credit_grant c
    WHERE c.bucket = bucket AND c.account = account AND c.state = 1 AND NOT c.empty
    UNION ALL
    SELECT c.* FROM credit_grant c
    WHERE c.bucket = bucket AND c.account = account AND c.due_at < 'infinity' AND c.state = 0
    UNION ALL
    SELECT c.* FROM credit_grant c
    WHERE ended AND c.bucket = bucket AND c.account = account
      AND (c.state > 1 OR c.state = 1 AND c.empty)
    LIMIT most
  ) x;
  RETURN coalesce(answer, '[]');
END
$$;
