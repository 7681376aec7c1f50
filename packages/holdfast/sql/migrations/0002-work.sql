-- Work to be done: rows that claims are made over, ready to use. Whoever has a table of their own
-- needs nothing of this.
--
-- A row is pending, claimed (by whoever has its token, until lease_until) or dead; done ones are
-- deleted. Rows are claimed by FOR NO KEY UPDATE SKIP LOCKED and changed only where the token fits.

CREATE TABLE :"schema".work (
  -- Of the scope.
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  id uuid NOT NULL,
  queue text NOT NULL,
  -- Whose work it is: a tenant, a customer. What turns and limits go by.
  scope text NOT NULL,
  payload jsonb NOT NULL,
  status text NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'claimed', 'dead')),
  -- Smaller first; few different values.
  priority integer NOT NULL DEFAULT 0,
  -- Not before.
  run_at timestamptz NOT NULL,
  enqueued_at timestamptz NOT NULL,
  unique_key text,
  attempts integer NOT NULL DEFAULT 0,
  max_attempts integer NOT NULL CHECK (max_attempts > 0),
  claim_token uuid,
  lease_until timestamptz,
  claimed_by text,
  last_error text,
  PRIMARY KEY (bucket, id)
) WITH (
  -- Every row is written about three times and then deleted.
  autovacuum_vacuum_scale_factor = 0.01,
  autovacuum_vacuum_threshold = 500,
  autovacuum_vacuum_insert_scale_factor = 0.05
);

-- One index per question; none covers rows that are in another state.
CREATE INDEX work_pending ON :"schema".work (queue, priority, run_at, id) WHERE status = 'pending';
CREATE INDEX work_turns ON :"schema".work (queue, scope, priority, run_at, id) WHERE status = 'pending';
CREATE INDEX work_leases ON :"schema".work (queue, lease_until) WHERE status = 'claimed';
CREATE INDEX work_in_flight ON :"schema".work (queue, scope) WHERE status = 'claimed';

-- Once under a key until it is done or dead. Claimed rows are in it: they may become pending again,
-- and must not meet another one then.
CREATE UNIQUE INDEX work_unique ON :"schema".work (bucket, queue, unique_key)
  WHERE unique_key IS NOT NULL AND status IN ('pending', 'claimed');
