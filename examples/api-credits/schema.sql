-- The tables of the naive way; see src/tables.ts.
CREATE TABLE api_call (
  user_id text NOT NULL,
  request_id text NOT NULL,
  created_at timestamptz NOT NULL DEFAULT now()
);
CREATE INDEX api_call_by_user ON api_call (user_id, created_at);

CREATE TABLE wallet (
  user_id text PRIMARY KEY,
  balance int NOT NULL,
  reserved int NOT NULL DEFAULT 0
);
