-- How the locks of each namespace were used, minute by minute, for a day.
CREATE OR REPLACE VIEW :"schema".lock_minutes AS
SELECT m.minute, m.namespace, m.acquired, m.timeouts, m.busy, m.wait, m.wait_max_ms, m.hold, m.hold_max_ms
FROM :"schema".lock_minute m
WHERE m.bucket = 0;
