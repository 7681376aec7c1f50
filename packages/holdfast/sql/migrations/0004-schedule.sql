-- Schedules: every tick, named by its scheduled instant, is taken once.
--
-- The row of "schedule" is the one lock of its ticks: whoever takes a tick holds it FOR NO KEY UPDATE,
-- for a moment, or to the end of the transaction if the tick's work is part of that.
-- Every table has the routing bucket of the schedule's name first in its primary key.

CREATE TABLE :"schema".schedule (
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  name text NOT NULL,
  -- The latest tick that was taken or passed over. It only goes up, so that no tick is taken again
  -- when its row is long gone.
  last_tick timestamptz NOT NULL,
  paused_at timestamptz,
  registered_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  PRIMARY KEY (bucket, name)
) WITH (fillfactor = 50);

CREATE TABLE :"schema".tick (
  bucket smallint NOT NULL,
  schedule text NOT NULL,
  -- The scheduled instant; of a manual one, when it was asked for.
  at timestamptz NOT NULL,
  manual boolean NOT NULL,
  -- 0 running, 1 failed and waiting for another attempt, 2 done, 3 failed, 4 lost, 5 skipped
  state smallint NOT NULL,
  attempt integer NOT NULL,
  -- The fence: whoever has another one than this has lost the tick.
  token uuid NOT NULL,
  holder text NOT NULL,
  -- Of a running one the end of its lease, of a waiting one when it may be tried again.
  lease_until timestamptz,
  started_at timestamptz NOT NULL,
  finished_at timestamptz,
  -- How many ticks just before this one nobody took; counted up to a thousand.
  missed integer NOT NULL DEFAULT 0,
  error text,
  PRIMARY KEY (bucket, schedule, at, manual),
  -- What is open without an end would be open for ever.
  CONSTRAINT tick_open_ends CHECK (state > 1 OR lease_until IS NOT NULL)
);
CREATE INDEX tick_open ON :"schema".tick (bucket, schedule, lease_until) WHERE state < 2;
