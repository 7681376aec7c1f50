-- The engine's own flavour of one schema: the three differ in their types only.
CREATE TABLE inventory (sku VARCHAR(50) PRIMARY KEY, quantity INT NOT NULL);
CREATE TABLE sale (id BIGINT AUTO_INCREMENT PRIMARY KEY, sku VARCHAR(50) NOT NULL);
CREATE TABLE picture (id BIGINT AUTO_INCREMENT PRIMARY KEY, user_id INT NOT NULL);
CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY);
CREATE TABLE outbox (order_id BIGINT PRIMARY KEY, FOREIGN KEY (order_id) REFERENCES orders (id));
CREATE TABLE job (
  id BIGINT AUTO_INCREMENT PRIMARY KEY,
  state VARCHAR(10) NOT NULL DEFAULT 'pending',
  started_at TIMESTAMP(6) NULL,   -- by hand
  claim_token CHAR(36),           -- with Holdfast: who has it, until when
  lease_until TIMESTAMP(6) NULL,
  KEY due (state, id),
  KEY leases (state, lease_until)
) ENGINE=InnoDB;
CREATE TABLE effect (job_id BIGINT NOT NULL);
CREATE TABLE report (tick BIGINT NOT NULL);
INSERT INTO inventory VALUES ('lamp', 5);
