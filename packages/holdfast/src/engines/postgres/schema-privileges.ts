import type { Row, Statement } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'
import { isTrue } from '../../core/is-true.ts'

/** What the application's role may use, by name. */
export interface AppObjects {
  readonly functions: readonly string[]
  readonly views: readonly string[]
  /** Tables whose rows it claims: no rule of ours depends on what is written there. */
  readonly tables: readonly string[]
}

/** What claiming rows takes. They are added by a function. */
export const tablePrivileges: readonly string[] = ['SELECT', 'UPDATE', 'DELETE']

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

/** Names come back with their schema: types of ours and of others are told apart. */
export const noSearchPath: Statement = {
  text: `SELECT pg_catalog.set_config('search_path', '', true) AS "set"`,
  values: [],
}

/** Whether the role exists, and whether privileges mean anything for it. */
export function lookForRole(schema: string, role: string): Statement {
  return {
    text: `
WITH space AS (
  SELECT oid, nspowner FROM pg_catalog.pg_namespace WHERE nspname = $1::text::name
), owned AS (
  SELECT nspowner AS owner FROM space
  UNION SELECT relowner FROM pg_catalog.pg_class WHERE relnamespace = (SELECT oid FROM space)
  UNION SELECT proowner FROM pg_catalog.pg_proc WHERE pronamespace = (SELECT oid FROM space)
)
SELECT EXISTS (SELECT FROM owned WHERE pg_catalog.pg_has_role(role.oid, owner, 'MEMBER'))::text AS "owns"
FROM pg_catalog.pg_roles AS role WHERE role.rolname = $2::text::name`,
    values: [schema, role],
  }
}

/**
 * Every privilege in the schema that everyone has, or that the role has by itself or by a role it
 * is a member of. Partitions included: a right on one is a way around the functions.
 */
export function readPrivileges(schema: string, role: string | undefined): Statement {
  return {
    text: `
WITH space AS (
  SELECT * FROM pg_catalog.pg_namespace WHERE nspname = $1::text::name
), entry AS (
  SELECT 'schema' AS kind, '' AS name, 'schema' AS object, pg_catalog.format('SCHEMA %I', nspname) AS target,
         '' AS part, nspowner AS owner, coalesce(nspacl, pg_catalog.acldefault('n', nspowner)) AS acl
  FROM space
  UNION ALL
  SELECT kind, relname, kind || ' ' || relname,
         pg_catalog.format('%s %I.%I', CASE kind WHEN 'sequence' THEN 'SEQUENCE' ELSE 'TABLE' END, nspname, relname),
         '', relowner, coalesce(relacl, pg_catalog.acldefault(CASE kind WHEN 'sequence' THEN 's' ELSE 'r' END::"char", relowner))
  FROM space JOIN pg_catalog.pg_class ON relnamespace = space.oid AND relkind IN ('r', 'p', 'v', 'm', 'S', 'f')
  CROSS JOIN LATERAL (SELECT CASE WHEN relkind IN ('v', 'm') THEN 'view' WHEN relkind = 'S' THEN 'sequence'
                             ELSE 'table' END AS kind) AS known
  UNION ALL
  SELECT 'column', relname, 'column ' || relname || '.' || attname,
         pg_catalog.format('TABLE %I.%I', nspname, relname), pg_catalog.format(' (%I)', attname), relowner, attacl
  FROM space JOIN pg_catalog.pg_class ON relnamespace = space.oid
  JOIN pg_catalog.pg_attribute ON attrelid = pg_class.oid AND attacl IS NOT NULL AND NOT attisdropped
  UNION ALL
  SELECT 'function', proname, pg_catalog.format('function %s(%s)', proname, pg_catalog.oidvectortypes(proargtypes)),
         pg_catalog.format('ROUTINE %I.%I(%s)', nspname, proname, pg_catalog.oidvectortypes(proargtypes)),
         '', proowner, coalesce(proacl, pg_catalog.acldefault('f', proowner))
  FROM space JOIN pg_catalog.pg_proc ON pronamespace = space.oid
)
SELECT kind, name::text, object, privilege_type AS privilege,
       pg_catalog.format('REVOKE %s%s ON %s FROM %s', privilege_type, part, target,
         coalesce(pg_catalog.quote_ident(rolname), 'PUBLIC')) AS revoke,
       (grantee = 0)::text AS "everyone"
FROM entry
CROSS JOIN LATERAL pg_catalog.aclexplode(acl) AS given
LEFT JOIN pg_catalog.pg_roles ON pg_roles.oid = grantee
WHERE grantee <> owner AND (grantee = 0 OR EXISTS (
  SELECT FROM pg_catalog.pg_roles AS role
  WHERE role.rolname = $2::text::name AND pg_catalog.pg_has_role(role.oid, grantee, 'MEMBER')))
ORDER BY object, privilege_type`,
    values: [schema, role ?? null],
  }
}

export function privilegesFrom(rows: readonly Row[]): HeldPrivilege[] {
  return rows.map((row) => ({
    kind: row['kind'] as HeldPrivilege['kind'],
    object: String(row['object']),
    name: String(row['name']),
    privilege: String(row['privilege']),
    everyone: isTrue(row['everyone']),
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
SELECT 'schema' AS kind, nspname::text AS name FROM pg_catalog.pg_namespace AS space
WHERE nspname = $1::text::name AND NOT pg_catalog.has_schema_privilege($2::text::name, space.oid, 'USAGE')
UNION ALL
SELECT 'function', proname FROM pg_catalog.pg_proc
JOIN pg_catalog.pg_namespace AS space ON space.oid = pronamespace AND nspname = $1::text::name
JOIN pg_catalog.jsonb_array_elements_text($3::text::jsonb) AS wanted ON wanted = proname
WHERE NOT pg_catalog.has_function_privilege($2::text::name, pg_proc.oid, 'EXECUTE')
UNION ALL
SELECT 'view', relname FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace AS space ON space.oid = relnamespace AND nspname = $1::text::name
JOIN pg_catalog.jsonb_array_elements_text($4::text::jsonb) AS wanted ON wanted = relname
WHERE relkind IN ('v', 'm') AND NOT pg_catalog.has_table_privilege($2::text::name, pg_class.oid, 'SELECT')
UNION ALL
SELECT 'table', relname FROM pg_catalog.pg_class
JOIN pg_catalog.pg_namespace AS space ON space.oid = relnamespace AND nspname = $1::text::name
JOIN pg_catalog.jsonb_array_elements_text($5::text::jsonb) AS wanted ON wanted = relname
WHERE EXISTS (SELECT FROM pg_catalog.jsonb_array_elements_text($6::text::jsonb) AS needed
  WHERE NOT pg_catalog.has_table_privilege($2::text::name, pg_class.oid, needed))
ORDER BY 1, 2`,
    values: [
      schema,
      role,
      ...[functions, views, tables, tablePrivileges].map((list) => JSON.stringify(list)),
    ],
  }
}
