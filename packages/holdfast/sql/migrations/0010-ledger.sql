-- Internal functions that take other arguments now (refusal, replay, draw_grants, move_grants, open_grant) stay beside
-- the new ones: a call of before that is under way while this commits goes on with them.

-- set_limit() has to be told whether a scope was given.
DROP FUNCTION IF EXISTS :"schema".set_limit(
  smallint, uuid, uuid, uuid, text, text, text, text, bigint, boolean, boolean, text, text, text
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
