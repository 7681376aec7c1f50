-- What became of the ticks that are still remembered. A transactional tick shows up when it has ended.
CREATE OR REPLACE VIEW :"schema".ticks AS
SELECT t.schedule, t.at, t.manual,
  (ARRAY['running', 'waiting', 'done', 'failed', 'lost', 'skipped'])[t.state + 1] AS state,
  t.attempt, t.holder, t.started_at, t.finished_at, t.lease_until, t.missed, t.error, t.bucket
FROM :"schema".tick t;
