-- What an account can give is decided in one place, also for windows that nobody has opened yet: refusal() has to be
-- told of the key's own account.
DROP FUNCTION IF EXISTS :"schema".refusal(
  integer[], smallint[], uuid[], boolean[], smallint[], bigint[], bigint[], integer[], text[], text[], bigint[],
  timestamptz
);

-- replay() has to be told of flags, and set_limit() whether a scope was given.
DROP FUNCTION IF EXISTS :"schema".replay(
  smallint, uuid, uuid, text, integer[], smallint[], smallint[], uuid[], bigint[], text[], text[]
);
DROP FUNCTION IF EXISTS :"schema".set_limit(
  smallint, uuid, uuid, uuid, text, text, text, text, bigint, boolean, boolean, text, text, text
);

-- Grants can be restricted to features.
DROP FUNCTION IF EXISTS :"schema".draw_grants(smallint, uuid, bigint, bigint, boolean);
DROP FUNCTION IF EXISTS :"schema".move_grants(
  smallint, uuid, smallint, bigint, bigint, bigint, bigint, bigint, bigint, uuid, text, bigint, jsonb, jsonb,
  timestamptz, bigint
);
DROP FUNCTION IF EXISTS :"schema".open_grant(
  smallint, uuid, bigint, uuid, text, bigint, jsonb, jsonb, timestamptz, bigint
);

-- What a book was declared as when it was first used. Of each server its own: it has no bucket, and is not moved.
CREATE TABLE :"schema".book (
  name text PRIMARY KEY,
  declaration jsonb NOT NULL,
  declared_at timestamptz NOT NULL DEFAULT clock_timestamp()
);

-- Who reads movements as they come, and up to when everything was read: what is older may be dropped.
CREATE TABLE :"schema".follower (
  name text PRIMARY KEY,
  -- Of one book only, or of all.
  book text,
  began_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  read_up_to timestamptz NOT NULL DEFAULT '-infinity'
);

-- The last movement of an account that was read. Numbers are gapless within an account, and one is committed before the
-- next is taken: nothing can appear behind this place later, whatever clocks and other transactions do.
CREATE TABLE :"schema".followed (
  follower text NOT NULL,
  bucket smallint NOT NULL,
  account uuid NOT NULL,
  seq bigint NOT NULL,
  PRIMARY KEY (follower, bucket, account)
) WITH (fillfactor = 70);
