-- The engine's own flavour of one schema: the three differ in their types only.
CREATE TABLE inventory (sku text PRIMARY KEY, quantity int NOT NULL);
CREATE TABLE sale (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, sku text NOT NULL);
CREATE TABLE picture (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, user_id int NOT NULL);
CREATE TABLE orders (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY);
CREATE TABLE outbox (order_id bigint PRIMARY KEY REFERENCES orders (id));
CREATE TABLE job (
  id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  state text NOT NULL DEFAULT 'pending',
  started_at timestamptz,  -- by hand
  claim_token uuid,        -- with Holdfast: who has it, until when
  lease_until timestamptz
);
CREATE INDEX ON job (id) WHERE state = 'pending';
CREATE INDEX ON job (lease_until) WHERE state = 'claimed';
CREATE TABLE effect (job_id bigint NOT NULL);
CREATE TABLE report (tick bigint NOT NULL);
INSERT INTO inventory VALUES ('lamp', 5);
