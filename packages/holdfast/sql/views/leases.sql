-- Who holds what, for people. Not the owners: whoever knows one can release its lease.
CREATE OR REPLACE VIEW :"schema".leases AS
  SELECT scope, name, token, owner IS NOT NULL AND expires_at > statement_timestamp() AS held, note,
    acquired_at, expires_at, ttl, delay
  FROM :"schema".lease;
