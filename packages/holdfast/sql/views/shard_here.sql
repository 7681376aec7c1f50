-- Which buckets this server serves, one bit for each; no row where it is the only one.
CREATE OR REPLACE VIEW :"schema".shard_here AS SELECT served FROM :"schema".shard_self;
