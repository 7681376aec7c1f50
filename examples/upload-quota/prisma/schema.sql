-- The table of schema.prisma. A real project would let `prisma migrate` write this.
CREATE TABLE user_image (
  id text PRIMARY KEY,
  user_id text NOT NULL,
  byte_size integer NOT NULL CHECK (byte_size > 0)
);
CREATE INDEX ON user_image (user_id);
