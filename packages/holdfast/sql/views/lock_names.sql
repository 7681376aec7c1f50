-- Names of locks that were used lately, by the number PostgreSQL shows for them.
CREATE OR REPLACE VIEW :"schema".lock_names AS
SELECT n.space, n.number,
  CASE n.space
    WHEN 1 THEN '1:' || n.number
    ELSE '2:' || (n.number >> 32) || ',' || ((n.number << 32) >> 32)
  END AS id,
  n.name, n.namespace, n.seen_at
FROM :"schema".lock_name n
WHERE n.bucket = 0;
