CREATE TABLE merchant (
  id text PRIMARY KEY,
  -- What a night's settlement costs.
  fee_cents int NOT NULL
);

-- What the job charges. A merchant is charged once a night; nothing here enforces it, as in most
-- systems before the first incident.
CREATE TABLE settlement (
  night timestamptz NOT NULL,
  merchant text NOT NULL REFERENCES merchant,
  fee_cents int NOT NULL,
  charged_by text NOT NULL,
  charged_at timestamptz NOT NULL DEFAULT clock_timestamp()
);
CREATE INDEX ON settlement (night);

INSERT INTO merchant SELECT 'merchant-' || n, 100 + n FROM generate_series(1, 20) AS n;
