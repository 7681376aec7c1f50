import type { Row, Statement } from '../../../core/driver.ts'
import { quoteIdentifier, quoteLiteral } from '../sql/identifier.ts'
import { isTrue } from '../../../core/is-true.ts'
import { dollarQuoted } from './script.ts'
import { cat, eq, ne } from '../sql/operators.ts'

/** What the application's role may use, by name. */
export interface AppObjects {
  readonly functions: readonly string[]
  readonly views: readonly string[]
  /** Tables whose rows it claims: no rule of ours depends on what is written there. */
  readonly tables: readonly string[]
}

/** What claiming rows takes. They are added by a function. */
const tablePrivileges: readonly string[] = ['SELECT', 'UPDATE', 'DELETE']

/** A privilege that somebody has. */
export interface HeldPrivilege {
  readonly kind: 'schema' | 'table' | 'view' | 'sequence' | 'column' | 'function'
  /** For people: `function apply(text)`. */
  readonly object: string
  /** Without schema and arguments. */
  readonly name: string
  readonly privilege: string
  /** Given to PUBLIC, and so to every role there is. */
  readonly everyone: boolean
  /** Undefined for PUBLIC. */
  readonly holder: string | undefined
  /** One of those that an application's role needs. */
  readonly meant: boolean
  /** The role that is looked at has it, by itself or by a role that it is a member of. */
  readonly own: boolean
  /** The statement that takes it back. */
  readonly revoke: string
}

/** The statements that give an application's role what it needs, and nothing else. */
export function grantTexts(
  schema: string,
  role: string,
  { functions, views, tables }: AppObjects,
): string[] {
  const space = quoteIdentifier(schema)
  const to = `TO ${quoteIdentifier(role)}`
  return [
    `GRANT USAGE ON SCHEMA ${space} ${to}`,
    ...functions.map((name) => `GRANT EXECUTE ON FUNCTION ${space}.${quoteIdentifier(name)} ${to}`),
    ...views.map((name) => `GRANT SELECT ON TABLE ${space}.${quoteIdentifier(name)} ${to}`),
    ...tables.map(
      (name) =>
        `GRANT ${tablePrivileges.join(', ')} ON TABLE ${space}.${quoteIdentifier(name)} ${to}`,
    ),
  ]
}

/**
 * Names come back with their schema: types of ours and of others are told apart. Compiling what is asked here would take
 * far longer than running it.
 */
export const noSearchPath: Statement = {
  text: `SELECT pg_catalog.set_config('search_path', '', true) AS "set", pg_catalog.set_config('jit', 'off', true) AS plain`,
  values: [],
}

/**
 * Everything in the schema that somebody can own or have a right on, as `entry`: to be followed by a SELECT, or a comma
 * and more. `schema` is SQL.
 */
export function entriesOf(schema: string): string {
  return `
WITH RECURSIVE space AS (
  SELECT * FROM pg_catalog.pg_namespace WHERE nspname ${eq} ${schema}
), entry AS (
  SELECT oid AS id, 'schema' AS kind, '' AS name, 'schema' AS object, pg_catalog.format('SCHEMA %I', nspname) AS target,
         '' AS part, nspowner AS owner, coalesce(nspacl, pg_catalog.acldefault('n', nspowner)) AS acl
  FROM space
  UNION ALL
  SELECT pg_class.oid, kind, relname, kind ${cat} ' ' ${cat} relname,
         pg_catalog.format('%s %I.%I', CASE WHEN kind ${eq} 'sequence' THEN 'SEQUENCE' ELSE 'TABLE' END, nspname, relname),
         '', relowner, coalesce(relacl, pg_catalog.acldefault(CASE WHEN kind ${eq} 'sequence' THEN 's' ELSE 'r' END::pg_catalog."char", relowner))
  FROM space JOIN pg_catalog.pg_class ON relnamespace ${eq} space.oid AND relkind ${eq} ANY ('{r,p,v,m,S,f}')
  CROSS JOIN LATERAL (SELECT CASE WHEN relkind ${eq} ANY ('{v,m}') THEN 'view' WHEN relkind ${eq} 'S' THEN 'sequence'
                             ELSE 'table' END AS kind) AS known
  UNION ALL
  SELECT pg_class.oid, 'column', relname, 'column ' ${cat} relname ${cat} '.' ${cat} attname,
         pg_catalog.format('TABLE %I.%I', nspname, relname), pg_catalog.format(' (%I)', attname), relowner, attacl
  FROM space JOIN pg_catalog.pg_class ON relnamespace ${eq} space.oid
  JOIN pg_catalog.pg_attribute ON attrelid ${eq} pg_class.oid AND attacl IS NOT NULL AND NOT attisdropped
  UNION ALL
  SELECT pg_proc.oid, 'function', proname,
         pg_catalog.format('function %s(%s)', proname, pg_catalog.oidvectortypes(proargtypes)),
         pg_catalog.format('ROUTINE %I.%I(%s)', nspname, proname, pg_catalog.oidvectortypes(proargtypes)),
         '', proowner, coalesce(proacl, pg_catalog.acldefault('f', proowner))
  FROM space JOIN pg_catalog.pg_proc ON pronamespace ${eq} space.oid
)`
}

/**
 * The same, and who has which right on it, as `held`. A REVOKE of the owner takes back only what the owner gave: what
 * another role passed on goes with the grant option that let it, wherever the chain of grants begins. A right on a
 * column that was given by somebody with an option on the whole table does not: the giver gets that option on the
 * column for a moment.
 */
function rightsOf(schema: string): string {
  return `${entriesOf(schema)}, given AS (
  SELECT entry.*, privilege_type AS privilege, grantee, grantor, is_grantable AS passable,
         pg_catalog.format('%s%s ON %s', privilege_type, part, target) AS told
  FROM entry CROSS JOIN LATERAL pg_catalog.aclexplode(acl)
), chain AS (
  SELECT told, grantee AS first, grantee AS last FROM given WHERE grantor ${eq} owner AND grantee ${ne} owner AND passable
  UNION
  SELECT chain.told, first, grantee FROM chain
  JOIN given ON given.told ${eq} chain.told AND grantor ${eq} last AND grantee ${ne} owner AND passable
), held AS (
  SELECT given.*, rolname, CASE
    WHEN grantor ${eq} owner THEN pg_catalog.format('REVOKE %s FROM %s%s', told,
      coalesce(pg_catalog.quote_ident(rolname), 'PUBLIC'), CASE WHEN passable THEN ' CASCADE' ELSE '' END)
    ELSE coalesce(
      (SELECT pg_catalog.string_agg(pg_catalog.format('REVOKE GRANT OPTION FOR %s FROM %I CASCADE', chain.told, pg_catalog.pg_get_userbyid(first)), '; ')
       FROM chain WHERE chain.told ${eq} given.told AND last ${eq} grantor),
      pg_catalog.format('GRANT %s TO %I WITH GRANT OPTION; REVOKE %1$s FROM %2$I CASCADE', told, pg_catalog.pg_get_userbyid(grantor))
    ) END AS revoke
  FROM given
  LEFT JOIN pg_catalog.pg_roles ON pg_roles.oid ${eq} grantee
  WHERE grantee ${ne} owner
)`
}

/** Every privilege in the schema, whoever has it. Partitions included: a right on one is a way around the functions. */
export function readPrivileges(
  schema: string,
  role: string | undefined,
  app: AppObjects,
): Statement {
  return {
    text: `${rightsOf('$1::pg_catalog.text::pg_catalog.name')}
SELECT kind, name::pg_catalog.text, object, privilege, revoke, (grantee ${eq} 0)::pg_catalog.text AS "everyone", rolname::pg_catalog.text AS "holder",
  (${isMeant(app)})::pg_catalog.text AS "meant",
  (grantee ${ne} 0 AND EXISTS (
    SELECT FROM pg_catalog.pg_roles AS role
    WHERE role.rolname ${eq} $2::pg_catalog.text::pg_catalog.name AND pg_catalog.pg_has_role(role.oid, grantee, 'MEMBER')
  ))::pg_catalog.text AS "own"
FROM held
ORDER BY object, rolname, privilege`,
    values: [schema, role ?? null],
  }
}

/**
 * Runs the statements that a query makes, in one statement, whatever search_path it meets. It leaves that as it was.
 * `run` is what is done with `each` of them.
 */
export function runEach(query: string, run = 'EXECUTE each;'): string {
  return `DO ${dollarQuoted(` DECLARE
  path CONSTANT pg_catalog.text := pg_catalog.current_setting('search_path');
  compiled CONSTANT pg_catalog.text := pg_catalog.current_setting('jit');
  each pg_catalog.text;
BEGIN
  PERFORM pg_catalog.set_config('search_path', '', true), pg_catalog.set_config('jit', 'off', true);
  FOR each IN ${query}
  LOOP
    ${run}
  END LOOP;
  PERFORM pg_catalog.set_config('search_path', path, true), pg_catalog.set_config('jit', compiled, true);
END `)}`
}

function takeBack(schema: string, which: string): string {
  return runEach(`${rightsOf(quoteLiteral(schema))}
    SELECT revoke FROM held WHERE ${which}`)
}

const knownSetting = 'holdfast.known_objects'

/** What is there before files are applied: rights on it were given by somebody. */
export function noteObjects(schema: string): string {
  const space = quoteLiteral(schema)
  return `SELECT pg_catalog.set_config('${knownSetting}', coalesce((
  SELECT pg_catalog.string_agg(oid::pg_catalog.text, ',') FROM (
    SELECT c.oid FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS s ON s.oid ${eq} relnamespace
    WHERE nspname ${eq} ${space}
    UNION ALL
    SELECT p.oid FROM pg_catalog.pg_proc AS p JOIN pg_catalog.pg_namespace AS s ON s.oid ${eq} pronamespace
    WHERE nspname ${eq} ${space}
    UNION ALL
    SELECT oid FROM pg_catalog.pg_namespace WHERE nspname ${eq} ${space}
  ) AS known
), ''), true)`
}

/**
 * PostgreSQL lets everyone execute a new function, and default privileges may have given more, to anybody. The schema
 * is ours alone, so this touches nothing of anybody else; what was given on an object that had been there stays. Not so
 * the right to create something in the schema: functions with the rights of the owner look there for what they call.
 */
export function closeToOthers(schema: string): string {
  return takeBack(
    schema,
    `grantee ${eq} 0 OR kind ${eq} 'schema' AND privilege ${eq} 'CREATE' OR id ${ne} ALL
      (pg_catalog.string_to_array(pg_catalog.current_setting('${knownSetting}'), ',')::pg_catalog.oid[])`,
  )
}

/** What the role itself was given beyond what it needs: default privileges, an earlier version. */
export function takeExtra(schema: string, role: string, app: AppObjects): string {
  return takeBack(schema, `rolname ${eq} ${quoteLiteral(role)} AND NOT ${isMeant(app)}`)
}

/** Whether an application's role needs it: the same as what `grantTexts` gives. */
function isMeant({ functions, views, tables }: AppObjects): string {
  const among = (names: readonly string[]): string =>
    `name ${eq} ANY (ARRAY[${names.map(quoteLiteral).join(', ')}]::pg_catalog.name[])`
  const needed = tablePrivileges.map(quoteLiteral).join(', ')
  return `CASE
  WHEN kind ${eq} 'schema' THEN privilege ${eq} 'USAGE'
  WHEN kind ${eq} 'function' THEN privilege ${eq} 'EXECUTE' AND ${among(functions)}
  WHEN kind ${eq} 'view' THEN privilege ${eq} 'SELECT' AND ${among(views)}
  WHEN kind ${eq} 'table' THEN privilege ${eq} ANY (ARRAY[${needed}]) AND ${among(tables)}
  ELSE false END`
}

export function privilegesFrom(rows: readonly Row[]): HeldPrivilege[] {
  return rows.map((row) => ({
    kind: row['kind'] as HeldPrivilege['kind'],
    object: String(row['object']),
    name: String(row['name']),
    privilege: String(row['privilege']),
    everyone: isTrue(row['everyone']),
    holder: (row['holder'] as string | null) ?? undefined,
    meant: isTrue(row['meant']),
    own: isTrue(row['own']),
    revoke: `${String(row['revoke'])};`,
  }))
}

/** Which of the objects the role cannot use; a name that is not there is not listed. */
export function readMissingPrivileges(
  schema: string,
  role: string,
  { functions, views, tables }: AppObjects,
): Statement {
  return {
    text: `
SELECT 'schema' AS kind, nspname::pg_catalog.text AS name FROM pg_catalog.pg_namespace AS space
WHERE nspname ${eq} $1::pg_catalog.text::pg_catalog.name AND NOT pg_catalog.has_schema_privilege($2::pg_catalog.text::pg_catalog.name, space.oid, 'USAGE')
UNION ALL
SELECT 'function', proname FROM pg_catalog.pg_proc
JOIN pg_catalog.pg_namespace AS space ON space.oid ${eq} pronamespace AND nspname ${eq} $1::pg_catalog.text::pg_catalog.name
JOIN pg_catalog.jsonb_array_elements_text($3::pg_catalog.text::pg_catalog.jsonb) AS wanted ON wanted ${eq} proname
WHERE NOT pg_catalog.has_function_privilege($2::pg_catalog.text::pg_catalog.name, pg_proc.oid, 'EXECUTE')
UNION ALL
SELECT 'view', relname FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace AS space ON space.oid ${eq} relnamespace AND nspname ${eq} $1::pg_catalog.text::pg_catalog.name
JOIN pg_catalog.jsonb_array_elements_text($4::pg_catalog.text::pg_catalog.jsonb) AS wanted ON wanted ${eq} relname
WHERE relkind ${eq} ANY ('{v,m}') AND NOT pg_catalog.has_table_privilege($2::pg_catalog.text::pg_catalog.name, pg_class.oid, 'SELECT')
UNION ALL
SELECT 'table', relname FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace AS space ON space.oid ${eq} relnamespace AND nspname ${eq} $1::pg_catalog.text::pg_catalog.name
JOIN pg_catalog.jsonb_array_elements_text($5::pg_catalog.text::pg_catalog.jsonb) AS wanted ON wanted ${eq} relname
WHERE EXISTS (SELECT FROM pg_catalog.jsonb_array_elements_text($6::pg_catalog.text::pg_catalog.jsonb) AS needed
  WHERE NOT pg_catalog.has_table_privilege($2::pg_catalog.text::pg_catalog.name, pg_class.oid, needed))
ORDER BY 1, 2`,
    values: [
      schema,
      role,
      ...[functions, views, tables, tablePrivileges].map((list) => JSON.stringify(list)),
    ],
  }
}
