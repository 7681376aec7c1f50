-- Since when, and where, this server has been compared with the other primaries. One that was started anew may have
-- come back from a backup, and then others have buckets that it believes to have; see confirm_shards(). "line" is the
-- timeline of its WAL, which is another one after a restore or a failover. "members" are the names of all primaries,
-- so that somebody who does not know one of them cannot take the others for all; null where init_shards() was not run
-- since they are kept.
--
-- Every statement of a cluster reads this table, and a transaction keeps its lock on it: at most three seconds are
-- waited for those, because all others wait as well.
DO $$
DECLARE
  own text := current_setting('lock_timeout');
  own_ms CONSTANT integer := (SELECT s.setting::integer FROM pg_catalog.pg_settings s WHERE s.name = 'lock_timeout');
BEGIN
  IF own_ms = 0 OR own_ms > 3000 THEN PERFORM set_config('lock_timeout', '3s', true); END IF;
  ALTER TABLE :"schema".shard_self ADD COLUMN started timestamptz, ADD COLUMN place text, ADD COLUMN line text,
    ADD COLUMN members text[];
  PERFORM set_config('lock_timeout', own, true);
END;
$$;

-- It has served until now, and goes on.
UPDATE :"schema".shard_self s
SET started = pg_catalog.pg_postmaster_start_time(), place = pg_catalog.pg_relation_filepath(s.tableoid),
  line = substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8);

-- Told the members as well.
DROP FUNCTION IF EXISTS :"schema".init_shards(uuid, text, text[]);
-- Both have to be told the cluster.
DROP FUNCTION IF EXISTS :"schema".open_move(uuid, integer[], text, text, text[]);
DROP FUNCTION IF EXISTS :"schema".refuse_move(uuid, integer[], text, text);
