-- Audits the accounts of a range of buckets, as JSON: how many accounts and movements were looked at,
-- how many problems were found, and the first of them with the names they belong to. Run all ranges
-- in one REPEATABLE READ transaction to audit one moment.
CREATE OR REPLACE FUNCTION :"schema".audit_range(first integer, last integer, most integer)
RETURNS text
LANGUAGE plpgsql STABLE SET search_path = :"schema", pg_temp SET jit = off AS $$
DECLARE
  low CONSTANT smallint := first;
  high CONSTANT smallint := last;
  chains record;
  holds record;
  operations record;
  grants record;
  listed json;
BEGIN
  SELECT * INTO chains FROM audit_chains(low, high, most);
  SELECT * INTO holds FROM audit_holds(low, high, most);
  SELECT * INTO operations FROM audit_operations(low, high, most);
  SELECT count(*) AS found, json_agg(x.one) FILTER (WHERE x.number <= most) AS problems INTO grants
  FROM (
    SELECT row_number() OVER () AS number, json_build_object('problem', 'grants', 'bucket', g.bucket,
      'account', g.account, 'what', g.problem) AS one
    FROM check_grants(low, high) g
  ) x;
  SELECT json_agg(json_build_object('check', p.problem, 'account', p.account, 'seq', p.seq,
    'hold', p.hold, 'operation', p.operation, 'what', p.what, 'book', a.book, 'key', a.key,
    'scope', a.scope, 'start', micros(a.window_start)::text, 'end', micros(a.window_end)::text))
  INTO listed
  FROM (
    SELECT x.*
    FROM unnest(ARRAY[chains.problems, holds.problems, operations.problems, grants.problems]) AS list
    CROSS JOIN LATERAL json_to_recordset(list)
      AS x(problem text, bucket smallint, account uuid, seq text, hold text, operation text, what text)
    LIMIT most
  ) p
  LEFT JOIN account a ON a.bucket = p.bucket AND a.id = p.account;
  RETURN json_build_object('accounts', chains.accounts::text, 'movements', chains.movements::text,
    'found', (chains.found + holds.found + operations.found + grants.found)::text,
    'problems', coalesce(listed, '[]'));
END
$$;
