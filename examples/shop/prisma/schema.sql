-- The tables of schema.prisma. A real project would let `prisma migrate` write this.
CREATE TABLE shop_order (
  id text PRIMARY KEY,
  external_id text NOT NULL,
  source text NOT NULL
);
CREATE INDEX ON shop_order (external_id);
CREATE TABLE order_line (
  id text PRIMARY KEY,
  order_id text NOT NULL REFERENCES shop_order,
  sku text NOT NULL,
  quantity integer NOT NULL CHECK (quantity > 0)
);
CREATE INDEX ON order_line (order_id);
CREATE TABLE return_line (
  id text PRIMARY KEY,
  external_id text NOT NULL,
  order_id text NOT NULL REFERENCES shop_order,
  sku text NOT NULL,
  quantity integer NOT NULL CHECK (quantity > 0)
);
CREATE INDEX ON return_line (external_id);
CREATE INDEX ON return_line (order_id);

-- Only the shop without Holdfast needs these.
CREATE TABLE variant (
  sku text PRIMARY KEY,
  stock integer NOT NULL
);
CREATE TABLE stock_movement (
  id text PRIMARY KEY,
  sku text NOT NULL,
  quantity integer NOT NULL,
  source text NOT NULL,
  external_id text NOT NULL
);
CREATE INDEX ON stock_movement (external_id);
