-- The table of schema.prisma. A real project would let `prisma migrate` write this.
CREATE TABLE booking (
  id serial PRIMARY KEY,
  desk text NOT NULL,
  guest text NOT NULL,
  starts_at timestamptz NOT NULL,
  ends_at timestamptz NOT NULL
);
CREATE INDEX ON booking (desk, starts_at);
CREATE INDEX ON booking (guest, starts_at);
