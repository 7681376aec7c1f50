-- Leases: exclusion that outlives a transaction. One row is one name; its token says who holds it.
--
-- Three locks on that row, and no other, make up the protocol:
--   take over   FOR UPDATE         changes the token; waits for, or passes by, whoever is below
--   renew       FOR NO KEY UPDATE  moves the expiry, never the token
--   guard       FOR KEY SHARE      in the transaction of the protected write, until it ends
-- KEY SHARE is the weakest lock there is, and FOR UPDATE the only one that conflicts with it: a
-- guarded write never waits for a renewal or another guarded write, and no token changes under one.
CREATE TABLE :"schema".lease (
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  scope text NOT NULL,
  name text NOT NULL,
  -- Random, made by whoever acquires it; null once it was released.
  owner uuid,
  -- Only grows, over all leases of the bucket; see lease_counter.
  token bigint NOT NULL,
  -- As the holder asked: what counts is written here and not in somebody's configuration.
  ttl interval NOT NULL,
  delay interval NOT NULL,
  acquired_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- Words of the holder for people: a host, a process.
  note text,
  PRIMARY KEY (bucket, scope, name)
) WITH (
  -- No column but those of the primary key is indexed, so renewals are HOT.
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000
);

-- The last token given in a bucket. Never deleted, so that a name that was forgotten goes on from
-- there; a row, and not a sequence, so that it moves with its bucket.
CREATE TABLE :"schema".lease_counter (
  bucket smallint PRIMARY KEY,
  token bigint NOT NULL
) WITH (fillfactor = 50);
