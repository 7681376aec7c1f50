-- The ledger: bounded balances that change only through movements.
--
-- One row of "balance" is the one lock of its account: whatever belongs to the account (movements,
-- holds, grants, operations) is read and written only while that row is locked, and rows are locked
-- in the order of their primary key. There are no foreign keys on the hot path; audit() checks what
-- they would.
--
-- Every table has the routing bucket of its scope (0-4095) first in its primary key, so that a
-- bucket can be moved to another server by a publication with a row filter.

-- Who an account is. Written once, when the account is first used. Of a book with calendar windows,
-- every window of a key is an account of its own.
CREATE TABLE :"schema".account (
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  id uuid NOT NULL,
  book text NOT NULL,
  key text NOT NULL,
  scope text NOT NULL,
  window_start timestamptz NOT NULL DEFAULT '-infinity',
  window_end timestamptz NOT NULL DEFAULT 'infinity',
  opened_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (bucket, id)
);
CREATE INDEX account_by_key ON :"schema".account (book, key, window_start);

-- available = credited - debited - held + allowance
--   quota:   allowance is the limit, debited what was used, credited what was given back
--   credits: credited is everything granted, debited what was spent or expired, allowance the
--            overdraft
--   stock:   credited is what came in, debited what went out, allowance the backorder
-- No column but those of the primary key is indexed, and half of each page is free: updates are HOT.
CREATE TABLE :"schema".balance (
  bucket smallint NOT NULL,
  account uuid NOT NULL,
  credited bigint NOT NULL DEFAULT 0,
  debited bigint NOT NULL DEFAULT 0,
  held bigint NOT NULL DEFAULT 0,
  allowance bigint NOT NULL DEFAULT 0,
  -- Number of the last movement; gapless, because it is taken under the lock.
  seq bigint NOT NULL DEFAULT 0,
  -- When that movement was; never goes back, even if the server's clock does.
  moved_at timestamptz NOT NULL DEFAULT '-infinity',
  -- When the next hold or grant falls due, or earlier.
  due_at timestamptz NOT NULL DEFAULT 'infinity',
  -- Up to when a rate limit has been refilled.
  refilled_at timestamptz,
  -- Never below zero, whatever is asked: stock.
  walled boolean NOT NULL DEFAULT false,
  -- The allowance was set for this account; what operations bring along is ignored.
  pinned boolean NOT NULL DEFAULT false,
  -- Has grants, so every debit is drawn from some of them.
  granted boolean NOT NULL DEFAULT false,
  PRIMARY KEY (bucket, account),
  -- The last wall. One constraint, because each is read anew by every statement that writes.
  CONSTRAINT balance_never_below CHECK (
    least(credited, debited, held) >= 0 AND (NOT walled OR credited - debited - held + allowance >= 0)
  )
) WITH (
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000
);

-- The only way a balance changes. Partitioned by month, so that old months can be dropped.
CREATE TABLE :"schema".movement (
  bucket smallint NOT NULL,
  -- See movement_kind().
  kind smallint NOT NULL,
  account uuid NOT NULL,
  seq bigint NOT NULL,
  at timestamptz NOT NULL,
  credit bigint NOT NULL,
  debit bigint NOT NULL,
  hold bigint NOT NULL,
  credited bigint NOT NULL,
  debited bigint NOT NULL,
  held bigint NOT NULL,
  -- The allowance in force.
  allowance bigint NOT NULL,
  operation_id text NOT NULL,
  hold_id uuid,
  grant_id uuid,
  -- Source, reference, actor, reason: the caller's words.
  note jsonb,
  PRIMARY KEY (bucket, account, seq, at)
) PARTITION BY RANGE (at);

-- What was answered to an operation, by line: the same id is applied once. Kept for a horizon.
CREATE TABLE :"schema".operation (
  bucket smallint NOT NULL,
  -- Scope and book, in which operation ids are unique.
  owner uuid NOT NULL,
  -- The caller's operation id, or its hash if that is not a UUID.
  id uuid NOT NULL,
  line smallint NOT NULL,
  kind smallint NOT NULL,
  account uuid NOT NULL,
  amount bigint NOT NULL,
  -- Of a refund: the id of the operation it gives back.
  ref uuid,
  -- How much of it was given back by refunds.
  returned bigint NOT NULL DEFAULT 0,
  -- The movement; null for a refusal that is remembered.
  seq bigint,
  at timestamptz NOT NULL,
  -- Until when a remembered refusal is repeated, and what it said.
  refused_until timestamptz,
  refusal text,
  PRIMARY KEY (bucket, id, owner, line)
) WITH (fillfactor = 90);
CREATE INDEX operation_by_age ON :"schema".operation USING brin (at);

-- Amounts put aside. The terminal transition happens once, under the account's lock.
CREATE TABLE :"schema".hold (
  bucket smallint NOT NULL,
  -- Made of owner and id of the operation; the same for all its lines.
  id uuid NOT NULL,
  account uuid NOT NULL,
  amount bigint NOT NULL,
  -- 0 open, 1 settled, 2 released, 3 expired, 4 settled after it had expired
  state smallint NOT NULL DEFAULT 0,
  settled bigint,
  expires_at timestamptz NOT NULL,
  -- The movement that made it and the one that ended it.
  made_seq bigint NOT NULL,
  seq bigint,
  ended_at timestamptz,
  operation_id text NOT NULL,
  PRIMARY KEY (bucket, id, account)
);
CREATE INDEX hold_due ON :"schema".hold (expires_at) WHERE state = 0;
CREATE INDEX hold_open ON :"schema".hold (bucket, account, expires_at) WHERE state = 0;

-- Credit with priority and expiry. "remaining" is neither spent nor held:
-- amount = remaining + what allocations took and did not return + lapsed
CREATE TABLE :"schema".credit_grant (
  bucket smallint NOT NULL,
  account uuid NOT NULL,
  -- That of the operation that made it.
  id uuid NOT NULL,
  -- Burn order: priority, then earlier expiry, then earlier arrival.
  priority smallint NOT NULL,
  ordinal bigint NOT NULL,
  amount bigint NOT NULL CHECK (amount > 0),
  remaining bigint NOT NULL CHECK (remaining >= 0),
  -- Expired, voided or rolled over.
  lapsed bigint NOT NULL DEFAULT 0 CHECK (lapsed >= 0),
  effective_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  -- 0 not yet effective, 1 active, 2 expired, 3 voided
  state smallint NOT NULL CHECK (state BETWEEN 0 AND 3),
  -- When it begins or ends by itself.
  due_at timestamptz NOT NULL GENERATED ALWAYS AS (
    CASE state WHEN 0 THEN effective_at WHEN 1 THEN expires_at ELSE 'infinity' END
  ) STORED,
  -- Nothing remains. A column of its own, so that the many that are spent do not stand in the way
  -- of the few that are not, and so that an update of "remaining" alone is HOT.
  empty boolean NOT NULL DEFAULT false,
  -- At expiry this much of it becomes a new grant that lives so much longer.
  rollover_limit bigint NOT NULL DEFAULT 0 CHECK (rollover_limit >= 0),
  rollover_for interval,
  rolled_from uuid,
  operation_id text NOT NULL,
  note jsonb,
  PRIMARY KEY (bucket, account, id),
  CONSTRAINT credit_grant_adds_up CHECK (remaining + lapsed <= amount AND empty = (remaining = 0))
) WITH (fillfactor = 80);
CREATE INDEX credit_grant_burn ON :"schema".credit_grant (bucket, account, priority, expires_at, ordinal)
  WHERE state = 1 AND NOT empty;
CREATE INDEX credit_grant_next ON :"schema".credit_grant (bucket, account, due_at)
  WHERE due_at < 'infinity';
CREATE INDEX credit_grant_due ON :"schema".credit_grant (due_at) WHERE due_at < 'infinity';

-- Provenance: which grant paid which movement, a hold included.
CREATE TABLE :"schema".allocation (
  bucket smallint NOT NULL,
  account uuid NOT NULL,
  seq bigint NOT NULL,
  -- In which order the grants of one movement were drawn from; given back in the other direction.
  ordinal integer NOT NULL,
  -- Null for what no grant could pay: an overdraft, or more than was held.
  grant_id uuid,
  amount bigint NOT NULL CHECK (amount > 0),
  returned bigint NOT NULL DEFAULT 0,
  -- Pays what was owed before, not the movement itself.
  arrears boolean NOT NULL DEFAULT false,
  PRIMARY KEY (bucket, account, seq, ordinal),
  CONSTRAINT allocation_returned CHECK (returned BETWEEN 0 AND amount)
);
CREATE INDEX allocation_arrears ON :"schema".allocation (bucket, account, seq, ordinal)
  WHERE arrears AND returned < amount;

-- The balance before the oldest movement that is kept.
CREATE TABLE :"schema".checkpoint (
  bucket smallint NOT NULL,
  account uuid NOT NULL,
  seq bigint NOT NULL,
  at timestamptz NOT NULL,
  credited bigint NOT NULL,
  debited bigint NOT NULL,
  held bigint NOT NULL,
  allowance bigint NOT NULL,
  PRIMARY KEY (bucket, account)
);

-- From when on operation ids are remembered, where older ones were forgotten.
CREATE TABLE :"schema".horizon (
  bucket smallint PRIMARY KEY,
  operations timestamptz NOT NULL
);

-- Months are made by extend_partitions(); what falls outside of them is kept here.
CREATE TABLE :"schema".movement_default PARTITION OF :"schema".movement DEFAULT;

CREATE FUNCTION :"schema".refuse_change() RETURNS trigger
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
BEGIN
  RAISE EXCEPTION 'movements are append-only: correct a balance with an adjust operation'
    USING ERRCODE = 'restrict_violation';
END;
$$;
CREATE TRIGGER movement_append_only BEFORE UPDATE OR DELETE ON :"schema".movement
  FOR EACH ROW EXECUTE FUNCTION :"schema".refuse_change();
CREATE TRIGGER movement_no_truncate BEFORE TRUNCATE ON :"schema".movement
  FOR EACH STATEMENT EXECUTE FUNCTION :"schema".refuse_change();
-- Triggers of statements are not inherited by partitions.
CREATE TRIGGER movement_no_truncate BEFORE TRUNCATE ON :"schema".movement_default
  FOR EACH STATEMENT EXECUTE FUNCTION :"schema".refuse_change();
