-- Enters somebody who follows movements, if the name is new; from now on, or from the oldest movement that is kept. Tells
-- the book that the name follows, or null for all.
CREATE OR REPLACE FUNCTION :"schema".start_following(name text, book text, from_now boolean) RETURNS text
LANGUAGE plpgsql VOLATILE SECURITY DEFINER
SET search_path = :"schema", pg_temp
AS $$
#variable_conflict use_variable
DECLARE
  entered timestamptz;
BEGIN
  INSERT INTO follower (name, book, read_up_to)
  VALUES (name, book, CASE WHEN from_now THEN clock_timestamp() ELSE '-infinity' END)
  ON CONFLICT ON CONSTRAINT follower_pkey DO NOTHING
  RETURNING began_at INTO entered;
  IF from_now AND entered IS NOT NULL THEN
    INSERT INTO followed (follower, bucket, account, seq)
    SELECT name, b.bucket, b.account, b.seq
    FROM balance b
    JOIN account a ON a.bucket = b.bucket AND a.id = b.account
    WHERE b.seq > 0 AND (book IS NULL OR a.book = book)
    ON CONFLICT ON CONSTRAINT followed_pkey DO NOTHING;
  END IF;
  RETURN (SELECT f.book FROM follower f WHERE f.name = name);
END
$$;
