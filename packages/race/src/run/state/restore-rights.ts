/** What a role needs to put rows back, asked before anything is run; what is missing is told as the GRANT that gives it. */
import { keptIn, type Asking } from './snapshot.ts'

interface Missing {
  readonly what: 'parameter' | 'table' | 'sequence' | 'policy' | 'schema'
  readonly schema: string
  readonly name: string
  readonly role: string
}

const missingText = `
  WITH mine AS (
    SELECT c.oid, c.relkind, n.nspname, c.relname, n.oid AS schema, c.relrowsecurity,
           format('%I.%I', n.nspname, c.relname) AS name
    FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE c.oid >= 16384 AND c.relkind IN ('r', 'p', 'S') AND NOT c.relispartition AND c.relpersistence <> 't'
      AND n.nspname NOT IN ('pg_catalog', 'information_schema', '${keptIn}'))
  SELECT what, quote_ident(nspname) AS schema, name, quote_ident(current_user) AS role
  FROM (
    SELECT 1 AS place, 'parameter' AS what, '' AS nspname, '' AS name
      WHERE NOT has_parameter_privilege('session_replication_role', 'SET')
    UNION ALL
    SELECT DISTINCT 2, 'schema', nspname, nspname::text FROM mine WHERE NOT has_schema_privilege(schema, 'USAGE')
    UNION ALL
    SELECT 3, 'table', nspname, name FROM mine WHERE relkind <> 'S'
      AND NOT (has_table_privilege(oid, 'SELECT') AND has_table_privilege(oid, 'INSERT') AND has_table_privilege(oid, 'DELETE'))
    UNION ALL
    SELECT 4, 'sequence', nspname, name FROM mine WHERE relkind = 'S'
      AND NOT (has_sequence_privilege(oid, 'SELECT') AND has_sequence_privilege(oid, 'UPDATE'))
    UNION ALL
    SELECT 5, 'policy', nspname, name FROM mine WHERE relrowsecurity AND row_security_active(oid)) AS missing
  ORDER BY place, name`

/** @throws Error with what the role may not, and the statements that allow it */
export async function assertRestoreRights(client: Asking): Promise<void> {
  const { rows } = await client.query<Missing>(missingText)
  const [first] = rows
  if (first === undefined) return
  const grants = [...new Set(rows.map(grantOf))]
  throw new Error(
    `the role ${first.role} may not ${whatOf(first)}, which is needed to put rows back. Let a superuser run:\n  ${grants.join('\n  ')}\nor use a superuser of this server for tests`,
  )
}

function whatOf({ what, name }: Missing): string {
  switch (what) {
    case 'parameter':
      return 'set session_replication_role'
    case 'schema':
      return `use the schema ${name}`
    case 'policy':
      return `see all rows of ${name}, which has row security`
    case 'table':
    case 'sequence':
      return `read and write ${name}`
  }
}

function grantOf({ what, schema, role }: Missing): string {
  switch (what) {
    case 'parameter':
      return replicationGrant(role)
    case 'schema':
      return `GRANT USAGE ON SCHEMA ${schema} TO ${role};`
    case 'policy':
      return `ALTER ROLE ${role} BYPASSRLS;`
    case 'table':
      return `GRANT SELECT, INSERT, DELETE ON ALL TABLES IN SCHEMA ${schema} TO ${role};`
    case 'sequence':
      return `GRANT SELECT, UPDATE ON ALL SEQUENCES IN SCHEMA ${schema} TO ${role};`
  }
}

function replicationGrant(role: string): string {
  return `GRANT SET ON PARAMETER session_replication_role TO ${role};`
}
