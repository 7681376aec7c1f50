-- Audits the accounts of a range of buckets, as JSON: how many accounts and movements were looked at,
-- how many problems were found, and the first of them with the names they belong to. Run all ranges
-- in one REPEATABLE READ transaction to audit one moment. Buckets that are on their way from or to another
-- server are passed over: half of their rows may be here.
CREATE OR REPLACE FUNCTION :"schema".audit_range(first integer, last integer, most integer)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp SET jit = off AS $$
DECLARE
  accounts bigint := 0;
  movements bigint := 0;
  wrong bigint := 0;
  lists json[] := '{}';
  part record;
  chains record;
  holds record;
  operations record;
  grants record;
  listed json;
BEGIN
  FOR part IN
    SELECT min(x.bucket)::smallint AS low, max(x.bucket)::smallint AS high
    FROM (
      SELECT b AS bucket, b - row_number() OVER (ORDER BY b) AS run
      FROM generate_series(first, last) AS b
      WHERE b <> ALL (ARRAY(
        SELECT m.bucket
        FROM shard_move v
        JOIN shard_map m ON m.bucket = ANY (v.buckets) AND NOT m.here
        WHERE v.ended_at IS NULL
      ))
    ) x
    GROUP BY x.run
    ORDER BY 1
  LOOP
    SELECT * INTO chains FROM audit_chains(part.low, part.high, most);
    SELECT * INTO holds FROM audit_holds(part.low, part.high, most);
    SELECT * INTO operations FROM audit_operations(part.low, part.high, most);
    SELECT count(*) AS found, json_agg(x.one) FILTER (WHERE x.number <= most) AS problems INTO grants
    FROM (
      SELECT row_number() OVER () AS number, json_build_object('problem', 'grants', 'bucket', g.bucket,
        'account', g.account, 'what', g.problem) AS one
      FROM check_grants(part.low, part.high) g
    ) x;
    accounts := accounts + chains.accounts;
    movements := movements + chains.movements;
    wrong := wrong + chains.found + holds.found + operations.found + grants.found;
    lists := lists || ARRAY[chains.problems, holds.problems, operations.problems, grants.problems];
  END LOOP;
  SELECT json_agg(json_build_object('check', p.problem, 'account', p.account, 'seq', p.seq,
    'hold', p.hold, 'operation', p.operation, 'what', p.what, 'book', a.book, 'key', a.key,
    'scope', a.scope, 'start', micros(a.window_start)::text, 'end', micros(a.window_end)::text))
  INTO listed
  FROM (
    SELECT x.*
    FROM unnest(lists) AS list
    CROSS JOIN LATERAL json_to_recordset(list)
      AS x(problem text, bucket smallint, account uuid, seq text, hold text, operation text, what text)
    LIMIT most
  ) p
  LEFT JOIN account a ON a.bucket = p.bucket AND a.id = p.account;
  RETURN json_build_object('accounts', accounts::text, 'movements', movements::text,
    'found', wrong::text, 'problems', coalesce(listed, '[]'));
END
$$;
