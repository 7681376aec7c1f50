-- A unique key of work is unique within its queue and scope. The index of 0002 left the scope out, so a
-- job of one tenant could be taken for that of another tenant in the same bucket.
--
-- `holdfast migrate` has built and dropped the indexes beforehand, online (sql/online/0009-work.sql). Then
-- nothing is left to do for the indexes here. Where this file is run without that, it waits at most three
-- seconds for the table, and writers wait while the index is built.
DO $$
DECLARE
  own_ms CONSTANT integer := (SELECT s.setting::integer FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout');
BEGIN
  PERFORM set_config('holdfast.lock_timeout', current_setting('lock_timeout'), true);
  IF own_ms = 0 OR own_ms > 3000 THEN PERFORM set_config('lock_timeout', '3s', true); END IF;
  -- CREATE INDEX IF NOT EXISTS would lock the table before it looks, and take a broken one for good.
  IF NOT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = to_regclass('work_unique_in_scope') AND i.indisvalid) THEN
    DROP INDEX IF EXISTS :"schema".work_unique_in_scope;
    CREATE UNIQUE INDEX work_unique_in_scope ON :"schema".work (bucket, queue, scope, unique_key)
      WHERE unique_key IS NOT NULL AND status IN ('pending', 'claimed');
  END IF;
  IF NOT EXISTS (SELECT FROM pg_index i WHERE i.indexrelid = to_regclass('work_dead') AND i.indisvalid) THEN
    DROP INDEX IF EXISTS :"schema".work_dead;
    CREATE INDEX work_dead ON :"schema".work (queue, run_at, bucket, id) WHERE status = 'dead';
  END IF;
  DROP INDEX IF EXISTS :"schema".work_unique;
END;
$$;

-- What is to run once more under the unique key of a job that has begun: the newest of all that came meanwhile,
-- as {payload, priority, run_at, max_attempts, channel}. Empty for all others.
ALTER TABLE :"schema".work ADD COLUMN again jsonb;

-- Adds the job that is to follow one that has ended. A trigger, so that it happens in the transaction that ends
-- the job, whoever ends it: a worker of an older version too. With the rights of the owner, because nobody
-- else may add rows. A move of buckets deletes rows without asking triggers.
CREATE FUNCTION :"schema".follow_work() RETURNS trigger
LANGUAGE plpgsql SECURITY DEFINER SET search_path = :"schema", pg_temp AS $$
BEGIN
  INSERT INTO work (bucket, id, queue, scope, payload, priority, run_at, enqueued_at, unique_key, max_attempts)
  VALUES (OLD.bucket, gen_random_uuid(), OLD.queue, OLD.scope, OLD.again -> 'payload',
          (OLD.again ->> 'priority')::integer,
          greatest(clock_timestamp(), (OLD.again ->> 'run_at')::timestamptz), clock_timestamp(),
          OLD.unique_key, (OLD.again ->> 'max_attempts')::integer)
  ON CONFLICT DO NOTHING;
  IF OLD.again ->> 'channel' IS NOT NULL THEN PERFORM pg_notify(OLD.again ->> 'channel', ''); END IF;
  -- A dead job that is tried again later has had its successor.
  IF TG_OP = 'UPDATE' THEN
    UPDATE work w SET again = NULL WHERE w.bucket = NEW.bucket AND w.id = NEW.id;
  END IF;
  RETURN NULL;
END;
$$;
CREATE TRIGGER work_done_follow AFTER DELETE ON :"schema".work
  FOR EACH ROW WHEN (OLD.again IS NOT NULL AND OLD.status = 'claimed') EXECUTE FUNCTION :"schema".follow_work();
CREATE TRIGGER work_dead_follow AFTER UPDATE OF status ON :"schema".work
  FOR EACH ROW WHEN (OLD.again IS NOT NULL AND NEW.status = 'dead') EXECUTE FUNCTION :"schema".follow_work();

-- When rows of a key were claimed last, for limits of claims per time. One row per limit and key; it is written
-- under the key's lock, by whoever claims rows of it, and forgotten when all of it is past.
CREATE TABLE :"schema".claim_rate (
  -- Of the key: where keys are scopes, it moves with them.
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  -- Table, fixed conditions and column.
  limiter text NOT NULL,
  key text NOT NULL,
  starts timestamptz[] NOT NULL,
  -- When the last of them is past.
  until timestamptz NOT NULL,
  PRIMARY KEY (bucket, limiter, key)
) WITH (fillfactor = 50);
CREATE INDEX claim_rate_past ON :"schema".claim_rate (until);

DO $$
BEGIN
  PERFORM set_config('lock_timeout', current_setting('holdfast.lock_timeout'), true);
END;
$$;
