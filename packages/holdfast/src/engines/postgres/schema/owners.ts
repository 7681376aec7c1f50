import type { Row, Statement } from '../../../core/driver.ts'
import { isTrue } from '../../../core/is-true.ts'
import { quoteLiteral } from '../sql/identifier.ts'
import { eq, ne } from '../sql/operators.ts'
import { entriesOf, runEach } from './privileges.ts'

/**
 * Functions of the schema run with the rights of their owner, so everything has to belong to one role: the schema's
 * owner. Where a superuser made the schema for somebody else, it is the role that installed: the functions must not
 * get the rights of a superuser.
 */

/** An object that belongs to another role. */
export interface Misplaced {
  /** For people: `table balance`. */
  readonly object: string
  readonly owner: string
  /** Whom it should belong to. */
  readonly rightful: string
  /** The statement that gives it to that role. */
  readonly give: string
}

/** Columns belong to their table, and so do sequences of columns; there are no other sequences. */
const misplaced = `, part AS (
  SELECT kind, object, target, owner FROM entry WHERE kind ${eq} ANY ('{schema,table,view,function}')
), installer AS (
  SELECT owner FROM part WHERE object ${eq} 'table installed_file'
), rightful AS (
  SELECT CASE WHEN rolsuper THEN coalesce((SELECT owner FROM installer), nspowner) ELSE nspowner END AS id
  FROM space JOIN pg_catalog.pg_roles ON pg_roles.oid ${eq} nspowner
), misplaced AS (
  SELECT part.*, id FROM part JOIN rightful ON owner ${ne} id
)`
const give = `pg_catalog.format('ALTER %s OWNER TO %I', target, pg_catalog.pg_get_userbyid(id))`

/**
 * What belongs to another role. Where nothing in the schema belongs to its owner, it is the schema that was given
 * away. `noSearchPath` has to come before it.
 */
export function readMisplaced(schema: string): Statement {
  return {
    text: `${entriesOf('$1::pg_catalog.text::pg_catalog.name')}${misplaced}, inside AS (
  SELECT FROM part JOIN rightful ON owner ${eq} id WHERE kind ${ne} 'schema'
), told AS (
  SELECT object, target, owner, id FROM misplaced WHERE EXISTS (SELECT FROM inside)
  UNION ALL
  SELECT object, target, part.owner, installer.owner FROM part CROSS JOIN installer
  WHERE kind ${eq} 'schema' AND NOT EXISTS (SELECT FROM inside)
)
SELECT object, pg_catalog.pg_get_userbyid(owner)::pg_catalog.text AS owner,
  pg_catalog.pg_get_userbyid(id)::pg_catalog.text AS rightful, ${give} AS give
FROM told ORDER BY object`,
    values: [schema],
  }
}

export function misplacedFrom(rows: readonly Row[]): Misplaced[] {
  return rows.map((row) => ({
    object: String(row['object']),
    owner: String(row['owner']),
    rightful: String(row['rightful']),
    give: `${String(row['give'])};`,
  }))
}

/** Gives everything in the schema to one role, as far as the current role may: what a superuser made for another. */
export function giveToOwner(schema: string): string {
  return runEach(
    `${entriesOf(quoteLiteral(schema))}${misplaced}
    SELECT ${give} FROM misplaced WHERE kind ${ne} 'schema'`,
    `BEGIN EXECUTE each; EXCEPTION WHEN insufficient_privilege THEN NULL; END;`,
  )
}

/** What makes a role as powerful as an owner. */
export interface RolePower {
  readonly superuser: boolean
  /** It is the schema's owner itself. */
  readonly ownsSchema: boolean
  /** Memberships in owners, its own or of a role that it is a member of. */
  readonly memberships: readonly { readonly owner: string; readonly member: string }[]
  /** By any of these, by what it owns, or as owner of the database where that owns the schema. */
  readonly owns: boolean
}

/** Whether the role exists, and whether privileges mean anything for it. */
export function lookForRole(schema: string, role: string): Statement {
  return {
    text: `${entriesOf('$1::pg_catalog.text::pg_catalog.name')}, owned AS (
  SELECT DISTINCT owner FROM entry
)
SELECT role.rolsuper::pg_catalog.text AS superuser,
  EXISTS (SELECT FROM space WHERE nspowner ${eq} role.oid)::pg_catalog.text AS "ownsSchema",
  EXISTS (SELECT FROM owned WHERE pg_catalog.pg_has_role(role.oid, owner, 'MEMBER'))::pg_catalog.text AS "owns",
  coalesce((
    SELECT pg_catalog.jsonb_agg(DISTINCT pg_catalog.jsonb_build_object(
      'owner', pg_catalog.pg_get_userbyid(roleid), 'member', pg_catalog.pg_get_userbyid(member)))
    FROM pg_catalog.pg_auth_members JOIN owned ON owner ${eq} roleid
    WHERE NOT role.rolsuper AND pg_catalog.pg_has_role(role.oid, member, 'MEMBER')
  ), '[]'::pg_catalog.jsonb)::pg_catalog.text AS memberships
FROM pg_catalog.pg_roles AS role WHERE role.rolname ${eq} $2::pg_catalog.text::pg_catalog.name`,
    values: [schema, role],
  }
}

export function powerFrom(row: Row): RolePower {
  return {
    superuser: isTrue(row['superuser']),
    ownsSchema: isTrue(row['ownsSchema']),
    memberships: JSON.parse(String(row['memberships'])) as RolePower['memberships'],
    owns: isTrue(row['owns']),
  }
}
