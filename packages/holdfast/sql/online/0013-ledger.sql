-- What migrations/0013-ledger needs of a table that is in use, outside of a transaction. Nobody is kept from writing.
CREATE INDEX CONCURRENTLY credit_grant_restricted ON :"schema".credit_grant (bucket, account)
  WHERE state OPERATOR(pg_catalog.=) 1 AND NOT empty AND pg_catalog.jsonb_exists(note, 'onlyFor');
