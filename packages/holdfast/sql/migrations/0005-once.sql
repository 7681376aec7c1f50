-- Work that is done once per external id: the row and the work commit together, or neither does. There
-- is no state for work that is under way, so none can be left behind.
CREATE TABLE :"schema".once (
  bucket smallint NOT NULL CHECK (bucket BETWEEN 0 AND 4095),
  key text NOT NULL,
  -- Keys are unique within it; by default the key itself.
  scope text NOT NULL,
  -- SHA-256 of what came with the key, in hexadecimal, if the caller compares it.
  fingerprint text,
  -- What the work gave, as JSON; null if it gave nothing.
  result text,
  done_at timestamptz NOT NULL,
  expires_at timestamptz NOT NULL,
  PRIMARY KEY (bucket, key, scope)
);
CREATE INDEX once_by_expiry ON :"schema".once (expires_at);
