-- Every schedule that was ever started, and how it stands.
CREATE OR REPLACE VIEW :"schema".schedules AS
SELECT s.name, nullif(s.last_tick, '-infinity') AS last_tick, s.paused_at, s.registered_at,
  (SELECT count(*) FROM :"schema".tick t
   WHERE t.bucket = s.bucket AND t.schedule = s.name AND t.state = 0) AS running,
  (SELECT count(*) FROM :"schema".tick t
   WHERE t.bucket = s.bucket AND t.schedule = s.name AND t.state = 1) AS waiting,
  s.bucket,
  -- A JSON object with cron and timeZone, or every; null if its processes have not said.
  s.rule
FROM :"schema".schedule s;
