-- Rate limits: one row for each key that is in use, and nothing else. There is no history and no operation id: whoever
-- needs those takes a quota.
CREATE TABLE :"schema".rate_limit (
  -- Of the scope.
  bucket smallint NOT NULL,
  -- A hash of the scope, the limit's name and window, and the key.
  key uuid NOT NULL,
  -- Of a calendar window, what was used in it. Of a rate, when nothing of it is used any more: microseconds since 1970.
  used bigint NOT NULL,
  -- Of a rate, in how many microseconds one of the caller's units comes back.
  unit bigint NOT NULL DEFAULT 1,
  -- From here on the row says as much as none: its window has ended, its rate has come back.
  until timestamptz NOT NULL,
  PRIMARY KEY (bucket, key)
) WITH (
  -- No column but those of the primary key is indexed, so that a row is changed in place.
  fillfactor = 50,
  autovacuum_vacuum_scale_factor = 0.02,
  autovacuum_vacuum_threshold = 1000
);
