-- What a holder's token is worth right now: `held`, or why it is not.
CREATE OR REPLACE FUNCTION :"schema".lease_state(
  found_lease :"schema".lease, token bigint
) RETURNS text
LANGUAGE sql VOLATILE SET search_path = :"schema", pg_temp AS $$
  SELECT CASE
    WHEN found_lease.token IS NULL THEN 'unknown'
    WHEN found_lease.token <> token THEN 'taken'
    WHEN found_lease.owner IS NULL THEN 'released'
    WHEN found_lease.expires_at <= clock_timestamp() THEN 'expired'
    ELSE 'held'
  END
$$;
