-- Prisma Migrate does not know EXCLUDE: these two statements belong into a migration by hand.
CREATE EXTENSION IF NOT EXISTS btree_gist;
ALTER TABLE booking ADD CONSTRAINT booking_no_overlap
  EXCLUDE USING gist (desk WITH =, tstzrange(starts_at, ends_at) WITH &&);
