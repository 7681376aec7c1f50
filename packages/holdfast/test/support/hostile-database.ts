import { databaseOf, withClient } from '@holdfast/testkit'

/**
 * A database whose other users have put names of their own in the way of PostgreSQL's: operators, functions, types and
 * views, found before those of pg_catalog, and settings that nobody expects. They do what the real ones do, but for
 * statements of ours, which they refuse: no statement of ours may ever reach one.
 */

/** `HOLDFAST_HOSTILE=1` runs a suite in such databases. */
export const isHostile: boolean = process.env['HOLDFAST_HOSTILE'] === '1'

/** How a trap knows a statement of ours: nobody else writes a schema with everything. */
const ours = `OPERATOR[(]pg_catalog[.]|::pg_catalog[.]|"holdfast"[.]`

/** What a statement of ours fails with if it reaches a trap. */
export const sprung = 'HF666'

/** How much is in the way. */
interface Traps {
  /** Types by name. What is written into a column of such a type meets it as well. */
  readonly types: string
  /** Not these operators, between such types: whoever makes an index, a check or a policy means them. */
  readonly sparedSigns: string
  readonly sparedTypes: string
}

/** Everything, for tables that were there before. */
export const everything: Traps = {
  types: 'int2,int4,int8,float8,bool,oid,name,regclass,bytea,date,text,jsonb,uuid,timestamptz',
  sparedSigns: '',
  sparedTypes: '',
}

/** Tests can make their own tables, indexes and triggers beside these, and clients read pg_type when they connect. */
const bearable: Traps = {
  types: 'oid,name,regclass,float8',
  sparedSigns: '=,<>,<,<=,>,>=,+,||',
  sparedTypes:
    'int2,int4,int8,numeric,text,bool,timestamptz,uuid,oid,jsonb,date,timestamp,interval',
}

const script = ({ types, sparedSigns, sparedTypes }: Traps): string => String.raw`
-- Not to fall into what it makes.
SET search_path = pg_catalog;
CREATE SCHEMA hostile;
GRANT USAGE ON SCHEMA hostile TO PUBLIC;
GRANT CREATE ON SCHEMA public TO PUBLIC;

CREATE FUNCTION hostile.passes(what pg_catalog.text) RETURNS boolean LANGUAGE plpgsql AS $trap$
BEGIN
  IF pg_catalog.current_query() OPERATOR(pg_catalog.~) '${ours}' THEN
    RAISE EXCEPTION '% was found by: %', what, pg_catalog.current_query() USING ERRCODE = '${sprung}';
  END IF;
  RETURN true;
END $trap$;

DO $make$
DECLARE
  types CONSTANT pg_catalog.oid[] := '{int2,int4,int8,numeric,float8,text,name,bool,timestamptz,timestamp,date,interval,
    jsonb,uuid,oid,"char",xid,regclass}'::pg_catalog.regtype[]::pg_catalog.oid[];
  each record;
  made integer := 0;
  place text;
BEGIN
  -- The same types on both sides.
  FOR each IN
    SELECT o.oprname AS sign, o.oprleft::regtype::text AS a, o.oprright::regtype::text AS b,
      o.oprresult::regtype::text AS result, p.proisstrict AS refuses_null, p.provolatile AS volatility, 'hostile' AS place,
      'a' AS x, 'b' AS y
    FROM pg_operator o JOIN pg_proc p ON p.oid = o.oprcode
    WHERE o.oprnamespace = 'pg_catalog'::regnamespace AND o.oprleft = ANY (types) AND o.oprright = ANY (types)
      AND NOT (o.oprname = ANY ('{${sparedSigns}}') AND o.oprleft = ANY ('{${sparedTypes}}'::regtype[])
        AND o.oprright = ANY ('{${sparedTypes}}'::regtype[]))
    UNION ALL
    -- And such that PostgreSQL would convert one of them: these come first wherever pg_catalog stands.
    SELECT s.sign, f.a::text, f.b::text, CASE WHEN s.sign ~ '[=<>]' THEN 'boolean' ELSE f.as END, true, 'i', 'public',
      'a::' || f.as, 'b::' || f.as
    FROM (
      SELECT a, b, CASE WHEN 'float8'::regtype IN (a, b) THEN 'double precision' ELSE 'numeric' END AS "as"
      FROM unnest('{int2,int4,int8,numeric,float8}'::regtype[]) a, unnest('{int2,int4,int8,numeric,float8}'::regtype[]) b
    ) f CROSS JOIN unnest('{=,<>,<,<=,>,>=,+,-,*,/}'::text[]) AS s(sign)
    WHERE NOT EXISTS (SELECT FROM pg_operator o WHERE o.oprname = s.sign AND o.oprleft = f.a AND o.oprright = f.b)
    UNION ALL
    SELECT s.sign, f.a, f.b, CASE WHEN s.sign = '||' THEN 'text' ELSE 'boolean' END, true, 'i', 'public', 'a::text',
      'b::text'
    FROM (VALUES ('character varying', 'text'), ('text', 'character varying'), ('name', 'character varying'),
      ('character varying', 'name'), ('character varying', 'character varying')) AS f(a, b)
    CROSS JOIN unnest('{=,<>,<,<=,>,>=,||,~~,!~~,~}'::text[]) AS s(sign)
  LOOP
    made := made + 1;
    EXECUTE format('CREATE FUNCTION %I.%I(a %s, b %s) RETURNS %s LANGUAGE plpgsql %s %s AS %L',
      each.place, 'operator_' || made, each.a, each.b, each.result,
      CASE WHEN each.refuses_null THEN 'STRICT' ELSE '' END,
      CASE each.volatility WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE '' END,
      format('BEGIN PERFORM hostile.passes(%L); RETURN %s OPERATOR(pg_catalog.%s) %s; END',
        format('operator %s (%s, %s)', each.sign, each.a, each.b), each.x, each.sign, each.y));
    EXECUTE format('CREATE OPERATOR %I.%s (leftarg = %s, rightarg = %s, function = %I.%I)',
      each.place, each.sign, each.a, each.b, each.place, 'operator_' || made);
  END LOOP;

  FOR each IN
    SELECT p.oid, p.proname AS name, p.proargtypes::regtype[] AS args, p.prorettype::regtype AS result,
      p.proisstrict AS refuses_null, p.provolatile AS volatility
    FROM pg_proc p
    WHERE p.pronamespace = 'pg_catalog'::regnamespace AND p.prokind = 'f' AND NOT p.proretset AND p.provariadic = 0
      AND p.proargmodes IS NULL AND p.pronargdefaults = 0
      AND p.proname IN ('now', 'clock_timestamp', 'statement_timestamp', 'current_setting', 'set_config', 'left',
        'lower', 'upper', 'length', 'substr', 'strpos', 'replace', 'translate', 'split_part', 'to_char', 'floor', 'ceil',
        'abs', 'date_trunc', 'pg_backend_pid', 'current_database', 'pg_is_in_recovery', 'to_regclass', 'quote_ident',
        'hashtext', 'hashtextextended', 'sha256', 'encode', 'convert_to', 'starts_with', 'pg_advisory_xact_lock',
        'pg_try_advisory_xact_lock', 'pg_cancel_backend', 'pg_terminate_backend', 'pg_blocking_pids', 'format_type',
        'has_table_privilege', 'has_schema_privilege', 'pg_has_role', 'version', 'age', 'gen_random_uuid')
  LOOP
    EXECUTE format('CREATE FUNCTION hostile.%I(%s) RETURNS %s LANGUAGE plpgsql %s %s AS %L',
      each.name, array_to_string(each.args, ', '), each.result,
      CASE WHEN each.refuses_null THEN 'STRICT' ELSE '' END,
      CASE each.volatility WHEN 'i' THEN 'IMMUTABLE' WHEN 's' THEN 'STABLE' ELSE '' END,
      format(CASE WHEN each.result = 'void'::regtype THEN 'BEGIN PERFORM hostile.passes(%L); PERFORM pg_catalog.%I(%s); END'
          ELSE 'BEGIN PERFORM hostile.passes(%L); RETURN pg_catalog.%I(%s); END' END,
        'function ' || each.name, each.name,
        (SELECT string_agg('$' || n, ', ' ORDER BY n) FROM generate_series(1, cardinality(each.args)) n)));
  END LOOP;

  FOREACH place IN ARRAY '{${types}}'::text[] LOOP
    EXECUTE format('CREATE DOMAIN hostile.%1$I AS pg_catalog.%1$I CHECK (hostile.passes(%2$L))', place, 'type ' || place);
  END LOOP;

  FOREACH place IN ARRAY '{pg_locks,pg_stat_activity,pg_class,pg_namespace,pg_database,pg_settings,pg_roles,pg_proc,
    pg_index,pg_prepared_xacts,pg_replication_slots}'::text[] LOOP
    EXECUTE format('CREATE VIEW hostile.%1$I AS SELECT * FROM pg_catalog.%1$I WHERE hostile.passes(%2$L)',
      place, 'table ' || place);
    EXECUTE format('GRANT SELECT ON hostile.%I TO PUBLIC', place);
  END LOOP;
END $make$;

CREATE FUNCTION hostile.one_more(bigint) RETURNS bigint LANGUAGE plpgsql AS $trap$
BEGIN PERFORM hostile.passes('function count'); RETURN $1 OPERATOR(pg_catalog.+) 1; END $trap$;
CREATE AGGREGATE hostile.count(*) (sfunc = hostile.one_more, stype = bigint, initcond = '0');
`

/** Settings that change what careless SQL means, or how its answers look. */
const settings: Readonly<Record<string, string>> = {
  search_path: 'public, hostile, pg_catalog',
  standard_conforming_strings: 'off',
  escape_string_warning: 'off',
  backslash_quote: 'off',
  quote_all_identifiers: 'on',
  datestyle: "'ISO, DMY'",
  intervalstyle: 'sql_standard',
  timezone: "'Asia/Kathmandu'",
  bytea_output: 'escape',
  extra_float_digits: '-15',
  transform_null_equals: 'on',
  array_nulls: 'off',
  xmlbinary: 'hex',
  enable_hashjoin: 'off',
  enable_seqscan: 'off',
  // Such plans look so dear that the server would compile each of them.
  jit: 'off',
}

/** Puts traps into a database; copies of it have them too. */
export async function setTraps(url: string, traps: Traps = bearable): Promise<void> {
  await withClient(url, async (client) => {
    await client.query(script(traps))
  })
}

/** The settings are not copied with a database: each has its own. They hold for sessions from here on. */
export async function setAgainst(url: string): Promise<void> {
  await withClient(url, async (client) => {
    const name = client.escapeIdentifier(databaseOf(url))
    for (const [setting, value] of Object.entries(settings)) {
      await client.query(`ALTER DATABASE ${name} SET ${setting} = ${value}`)
    }
  })
}

/** A database of a server of the test's own, made hostile if the suite is to run in such. */
export async function hostileIfAsked(url: string): Promise<string> {
  if (isHostile) {
    await setTraps(url)
    await setAgainst(url)
  }
  return url
}
