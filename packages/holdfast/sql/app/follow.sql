-- The movements of some accounts that a follower has not read, as a JSON array, account by account and in their order, each
-- with what it found; they count as read when this transaction commits. Null if somebody else reads for the same name
-- right now, and "gone" if nobody has this name any more, or follows another book with it.
CREATE OR REPLACE FUNCTION :"schema".follow(
  name text, book text, buckets smallint[], accounts uuid[], most integer
) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET plan_cache_mode = force_generic_plan
SET enable_seqscan = off
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  page json[] := '{}';
  -- The functions of an application are called by whoever has its role.
  room CONSTANT integer := greatest(1, least(coalesce(most, 1), 1000));
  a record;
  m movement%ROWTYPE;
  b movement%ROWTYPE;
  read bigint;
BEGIN
  IF NOT EXISTS (SELECT FROM follower f WHERE f.name = name AND f.book IS NOT DISTINCT FROM book) THEN
    RETURN '"gone"';
  END IF;
  PERFORM FROM follower f
  WHERE f.name = name AND f.book IS NOT DISTINCT FROM book
  FOR NO KEY UPDATE SKIP LOCKED;
  IF NOT FOUND THEN RETURN NULL; END IF;
  FOR a IN
    SELECT x.bucket, x.id, x.book, x.key, x.scope, x.window_start, x.window_end,
      coalesce(f.seq, c.seq, 0) AS seq, c.seq AS kept_from,
      coalesce(c.credited, 0) AS credited, coalesce(c.debited, 0) AS debited,
      coalesce(c.held, 0) AS held, c.allowance
    FROM unnest(buckets, accounts) WITH ORDINALITY AS w(bucket, account, ord)
    JOIN account x ON x.bucket = w.bucket AND x.id = w.account
    LEFT JOIN followed f ON f.follower = name AND f.bucket = x.bucket AND f.account = x.id
    LEFT JOIN checkpoint c ON c.bucket = x.bucket AND c.account = x.id
    WHERE NOT away(x.bucket) AND (book IS NULL OR x.book = book)
    ORDER BY w.ord
  LOOP
    read := a.seq;
    -- What stood before the first of them: as the one before left it, or the checkpoint if that was dropped.
    SELECT x.* INTO b FROM movement x WHERE x.bucket = a.bucket AND x.account = a.id AND x.seq = a.seq;
    IF NOT FOUND THEN
      b.credited := a.credited;
      b.debited := a.debited;
      b.held := a.held;
      b.allowance := a.allowance;
    END IF;
    FOR m IN
      SELECT x.* FROM movement x
      WHERE x.bucket = a.bucket AND x.account = a.id AND x.seq > a.seq
      ORDER BY x.seq
      LIMIT room - cardinality(page)
    LOOP
      IF m.seq <> read + 1 THEN
        RAISE EXCEPTION 'movements that were not followed are not kept any more' USING ERRCODE = 'HF007';
      END IF;
      read := m.seq;
      page := page || json_build_object('bucket', a.bucket, 'account', a.id, 'book', a.book, 'key', a.key,
        'scope', a.scope, 'seq', m.seq::text, 'kind', movement_kind(m.kind), 'at', micros(m.at)::text,
        'credit', m.credit::text, 'debit', m.debit::text, 'hold', m.hold::text,
        'credited', m.credited::text, 'debited', m.debited::text, 'held', m.held::text,
        'allowance', m.allowance::text, 'operation', m.operation_id,
        'holdId', lpad(to_hex(a.bucket::integer), 3, '0') || '-' || m.hold_id, 'grantId', m.grant_id,
        'note', m.note, 'start', micros(a.window_start)::text, 'end', micros(a.window_end)::text,
        'before', json_build_object('seq', (m.seq - 1)::text, 'credited', b.credited::text,
          'debited', b.debited::text, 'held', b.held::text,
          'allowance', coalesce(b.allowance, m.allowance)::text));
      b := m;
    END LOOP;
    IF read > a.seq THEN
      INSERT INTO followed (follower, bucket, account, seq) VALUES (name, a.bucket, a.id, read)
      ON CONFLICT ON CONSTRAINT followed_pkey DO UPDATE SET seq = excluded.seq;
    END IF;
    EXIT WHEN cardinality(page) >= room;
  END LOOP;
  RETURN array_to_json(page);
END
$$;
