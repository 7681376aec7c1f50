-- What migrations/0009-work needs of a table that is in use, each statement by itself, outside of a
-- transaction. None of them keeps anybody from writing.
--
-- First app/enqueue_work is replaced: it gets along with either index and with both. Building the new index
-- waits for every older snapshot, so no call of the old function is left when the old index is dropped.
CREATE UNIQUE INDEX CONCURRENTLY work_unique_in_scope ON :"schema".work (bucket, queue, scope, unique_key)
  WHERE unique_key IS NOT NULL AND status OPERATOR(pg_catalog.=) ANY (ARRAY['pending', 'claimed']);

-- Dead jobs of a queue, in the order in which they are listed.
CREATE INDEX CONCURRENTLY work_dead ON :"schema".work (queue, run_at, bucket, id) WHERE status OPERATOR(pg_catalog.=) 'dead';

DROP INDEX CONCURRENTLY IF EXISTS :"schema".work_unique;
