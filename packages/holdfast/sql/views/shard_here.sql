-- Which buckets this server serves, one bit for each; no row where it is the only one, nor before it was compared
-- with the other primaries. A server that was started anew, and a copy of its database, has to be again.
CREATE OR REPLACE VIEW :"schema".shard_here AS
SELECT served FROM :"schema".shard_self
WHERE started = pg_catalog.pg_postmaster_start_time()
  AND place = pg_catalog.pg_relation_filepath(shard_self.tableoid);
