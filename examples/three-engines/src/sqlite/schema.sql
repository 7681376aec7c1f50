-- The engine's own flavour of one schema: the three differ in their types only.
CREATE TABLE inventory (sku TEXT PRIMARY KEY, quantity INTEGER NOT NULL);
CREATE TABLE sale (id INTEGER PRIMARY KEY, sku TEXT NOT NULL);
CREATE TABLE picture (id INTEGER PRIMARY KEY, user_id INTEGER NOT NULL);
CREATE TABLE orders (id INTEGER PRIMARY KEY);
CREATE TABLE outbox (order_id INTEGER PRIMARY KEY REFERENCES orders (id));
CREATE TABLE job (
  id INTEGER PRIMARY KEY,
  state TEXT NOT NULL DEFAULT 'pending',
  started_at INTEGER,  -- by hand
  claim_token TEXT,    -- with Holdfast: who has it, until when
  lease_until INTEGER
);
CREATE INDEX job_pending ON job (id) WHERE state = 'pending';
CREATE INDEX job_claimed ON job (lease_until) WHERE state = 'claimed';
CREATE TABLE effect (job_id INTEGER NOT NULL);
CREATE TABLE report (tick INTEGER NOT NULL);
CREATE TABLE at_work (name TEXT PRIMARY KEY);
INSERT INTO inventory VALUES ('lamp', 5);
