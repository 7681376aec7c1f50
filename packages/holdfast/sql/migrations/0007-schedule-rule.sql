-- When a schedule ticks, as its processes declare it: a JSON object with cron and timeZone, or every.
-- For people and observers; nothing is decided by it.
ALTER TABLE :"schema".schedule ADD COLUMN rule text;
