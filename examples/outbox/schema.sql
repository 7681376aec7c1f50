-- An order and what has to be told about it are written in one transaction.
CREATE TABLE orders (
  id int PRIMARY KEY,
  total_cents int NOT NULL
);
CREATE TABLE outbox (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  order_id int NOT NULL REFERENCES orders (id),
  state text NOT NULL DEFAULT 'new',
  created_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- By hand: since when somebody works on it. With Holdfast: whose it is, until when, how often tried.
  started_at timestamptz,
  claim_token uuid,
  lease_until timestamptz,
  attempts int NOT NULL DEFAULT 0
);
CREATE INDEX ON outbox (created_at, id) WHERE state = 'new';
CREATE INDEX ON outbox (lease_until) WHERE state = 'at work';

-- What arrived on the other side: the customer's account is charged.
CREATE TABLE charge (
  outbox_id bigint NOT NULL,
  cents int NOT NULL
);
