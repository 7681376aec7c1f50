-- Accounts with movements that a follower has not read, as a JSON array of [bucket, account], in the order of the primary
-- key and after a place. With "recent_ms" only those with an operation of that time: few rows are looked at. An operation
-- whose transaction took longer, and what fell due by itself, is found without.
CREATE OR REPLACE FUNCTION :"schema".unread_accounts(
  name text, book text, recent_ms bigint, after_bucket smallint, after_account uuid, most integer
) RETURNS text
LANGUAGE plpgsql STABLE SECURITY DEFINER
SET search_path = :"schema", pg_temp
SET jit = off
AS $$
#variable_conflict use_variable
DECLARE
  -- What another server has, or is about to.
  gone CONSTANT smallint[] := ARRAY(
    SELECT m.bucket FROM shard_map m WHERE m.leaving OR NOT m.here OR unconfirmed()
  );
  room CONSTANT integer := greatest(1, least(coalesce(most, 1), 1000));
  page json;
BEGIN
  IF recent_ms IS NULL THEN
    SELECT json_agg(json_build_array(x.bucket, x.account) ORDER BY x.bucket, x.account) INTO page
    FROM (
      SELECT b.bucket, b.account
      FROM balance b
      LEFT JOIN followed f ON f.follower = name AND f.bucket = b.bucket AND f.account = b.account
      LEFT JOIN checkpoint c ON c.bucket = b.bucket AND c.account = b.account
      WHERE (b.bucket, b.account) > (after_bucket, after_account)
        AND b.seq > coalesce(f.seq, c.seq, 0) AND b.bucket <> ALL (gone)
        AND (book IS NULL OR EXISTS (
          SELECT FROM account a WHERE a.bucket = b.bucket AND a.id = b.account AND a.book = book
        ))
      ORDER BY b.bucket, b.account
      LIMIT room
    ) x;
  ELSE
    SELECT json_agg(json_build_array(x.bucket, x.account) ORDER BY x.bucket, x.account) INTO page
    FROM (
      SELECT DISTINCT o.bucket, o.account
      FROM operation o
      JOIN balance b ON b.bucket = o.bucket AND b.account = o.account
      LEFT JOIN followed f ON f.follower = name AND f.bucket = b.bucket AND f.account = b.account
      LEFT JOIN checkpoint c ON c.bucket = b.bucket AND c.account = b.account
      WHERE o.at >= clock_timestamp() - recent_ms * interval '1 millisecond'
        AND (o.bucket, o.account) > (after_bucket, after_account)
        AND b.seq > coalesce(f.seq, c.seq, 0) AND b.bucket <> ALL (gone)
        AND (book IS NULL OR EXISTS (
          SELECT FROM account a WHERE a.bucket = b.bucket AND a.id = b.account AND a.book = book
        ))
      ORDER BY o.bucket, o.account
      LIMIT room
    ) x;
  END IF;
  RETURN coalesce(page, '[]');
END
$$;
