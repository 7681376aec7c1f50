-- Which buckets this server is the primary of. Empty where there is one server for everything, and
-- then nothing here is ever looked at.
--
-- Its own rows that are here and not leaving are the only authority: it serves these buckets and
-- refuses all others. What it says about other servers is a hint, the better the higher the version.

CREATE TABLE :"schema".shard_map (
  bucket smallint PRIMARY KEY CHECK (bucket BETWEEN 0 AND 4095),
  -- The server that is believed to have it.
  shard text NOT NULL,
  here boolean NOT NULL,
  -- About to go to another server: nothing new is begun in it.
  leaving boolean NOT NULL DEFAULT false,
  -- Goes up by one with every move of the bucket.
  version bigint NOT NULL CHECK (version > 0),
  CONSTRAINT shard_map_leaves_from_here CHECK (here OR NOT leaving)
) WITH (fillfactor = 50);

-- One row: the name of this server, and of what it is a part. Two servers that were never set up
-- together must not be taken for one cluster.
CREATE TABLE :"schema".shard_self (
  single boolean PRIMARY KEY DEFAULT true CHECK (single),
  cluster uuid NOT NULL,
  shard text NOT NULL,
  -- One bit for each bucket: it is here and not leaving. Worked out from the map whenever that changes, so
  -- that a statement with hundreds of buckets reads one row and not hundreds.
  served bytea NOT NULL DEFAULT decode(repeat('00', 512), 'hex')
);

CREATE FUNCTION :"schema".note_served() RETURNS trigger
LANGUAGE plpgsql SET search_path = :"schema", pg_temp AS $$
DECLARE
  bits bytea := decode(repeat('00', 512), 'hex');
  own integer;
BEGIN
  -- First the lock, then a look at the map that sees what whoever had the lock before has committed.
  PERFORM FROM shard_self FOR UPDATE;
  FOR own IN SELECT m.bucket FROM shard_map m WHERE m.here AND NOT m.leaving LOOP
    bits := set_bit(bits, own, 1);
  END LOOP;
  UPDATE shard_self SET served = bits;
  RETURN NULL;
END;
$$;
CREATE TRIGGER shard_map_served AFTER INSERT OR UPDATE OR DELETE OR TRUNCATE ON :"schema".shard_map
  FOR EACH STATEMENT EXECUTE FUNCTION :"schema".note_served();

-- Every move that this server has a part in, and how far it has come; both servers write it down.
CREATE TABLE :"schema".shard_move (
  id uuid PRIMARY KEY,
  buckets smallint[] NOT NULL,
  source text NOT NULL,
  target text NOT NULL,
  step text NOT NULL,
  -- What somebody who goes on with it has to know.
  detail jsonb NOT NULL DEFAULT '{}',
  started_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  changed_at timestamptz NOT NULL DEFAULT clock_timestamp(),
  -- Null while it is under way.
  ended_at timestamptz
);

-- The last row of a bucket that a source sends in a move. It is written when nobody can write to the bucket
-- any more; changes arrive in the order of their commits, so where this row is, everything before it is.
CREATE TABLE :"schema".shard_end (
  bucket smallint PRIMARY KEY CHECK (bucket BETWEEN 0 AND 4095),
  move uuid NOT NULL
);
