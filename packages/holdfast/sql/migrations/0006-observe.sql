-- What locks are called, and how they were used: written down behind by processes that record, read by
-- observers. Nothing is decided by it, and all of it may be lost or deleted at any time.
--
-- Both tables tell about the locks of the server they are on, so they stay when a bucket moves to another
-- one. All their rows are therefore in bucket 0, which is there only because every table of ours has it.

-- The lock with this number has this name.
CREATE TABLE :"schema".lock_name (
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  -- 1: locked by one bigint. 2: by two integers, high and low half of the number.
  space smallint NOT NULL CHECK (space BETWEEN 1 AND 2),
  number bigint NOT NULL,
  name text NOT NULL,
  namespace text NOT NULL,
  -- To the minute.
  seen_at timestamptz NOT NULL,
  PRIMARY KEY (bucket, space, number)
);
CREATE INDEX lock_name_by_age ON :"schema".lock_name (seen_at);

-- How often the locks of a namespace were taken in a minute, and for how long they were waited for and
-- held: counts of 1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000 milliseconds at most, and more.
CREATE TABLE :"schema".lock_minute (
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  minute timestamptz NOT NULL,
  namespace text NOT NULL,
  acquired bigint NOT NULL,
  timeouts bigint NOT NULL,
  busy bigint NOT NULL,
  wait bigint[] NOT NULL,
  wait_max_ms double precision NOT NULL,
  hold bigint[] NOT NULL,
  hold_max_ms double precision NOT NULL,
  PRIMARY KEY (bucket, minute, namespace)
) WITH (fillfactor = 50);
