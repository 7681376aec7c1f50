import type { Transaction } from '../core/driver.ts'
import {
  type AppObjects,
  grantTexts,
  type HeldPrivilege,
  lookForRole,
  noSearchPath,
  privilegesFrom,
  readMissingPrivileges,
  readPrivileges,
  tablePrivileges,
} from '../engines/postgres/schema-privileges.ts'
import type { Finding } from './finding.ts'
import { appObjects } from './grants.ts'
import type { SchemaFiles } from './schema-files.ts'
import { isTrue } from '../core/is-true.ts'

/** Nobody but the owner has any right here, except the application's role those it needs. */
export async function inspectPrivileges<Tx>(
  transaction: Transaction<Tx>,
  files: SchemaFiles,
  schema: string,
  role: string | undefined,
): Promise<Finding[]> {
  await transaction.query(noSearchPath)
  const app = appObjects(files)
  const held = privilegesFrom(await transaction.query(readPrivileges(schema, role)))
  const byEveryone = merged(held.filter(({ everyone }) => everyone)).map(
    ({ object, privileges, fix }): Finding => ({
      code: 'public-privilege',
      object,
      what: `everyone (PUBLIC) has ${privileges}.`,
      fix,
    }),
  )
  if (role === undefined) return byEveryone
  const [found] = await transaction.query(lookForRole(schema, role))
  if (found === undefined || isTrue(found['owns'])) {
    return [...byEveryone, found === undefined ? noRole(role) : powerful(role)]
  }
  const extra = held.filter((privilege) => !privilege.everyone && !isMeant(privilege, app))
  const missing = await transaction.query(readMissingPrivileges(schema, role, app))
  return [
    ...byEveryone,
    ...merged(extra).map(
      ({ object, privileges, fix }): Finding => ({
        code: 'role-privilege-extra',
        object,
        what: `the role has ${privileges} and does not need it: the functions are the only way in.`,
        fix,
      }),
    ),
    ...missing.map((row) => lacks(schema, role, String(row['kind']), String(row['name']))),
  ]
}

function isMeant({ kind, name, privilege }: HeldPrivilege, app: AppObjects): boolean {
  if (kind === 'schema') return privilege === 'USAGE'
  if (kind === 'function') return privilege === 'EXECUTE' && app.functions.includes(name)
  if (kind === 'table') return tablePrivileges.includes(privilege) && app.tables.includes(name)
  return kind === 'view' && privilege === 'SELECT' && app.views.includes(name)
}

interface Merged {
  readonly object: string
  readonly privileges: string
  readonly fix: string
}

/** One finding per object. */
function merged(held: readonly HeldPrivilege[]): Merged[] {
  const objects = [...new Set(held.map(({ object }) => object))]
  return objects.map((object) => {
    const own = held.filter((privilege) => privilege.object === object)
    return {
      object,
      privileges: [...new Set(own.map(({ privilege }) => privilege))].join(', '),
      fix: own.map(({ revoke }) => revoke).join(' '),
    }
  })
}

function lacks(schema: string, role: string, kind: string, name: string): Finding {
  const only = {
    functions: kind === 'function' ? [name] : [],
    views: kind === 'view' ? [name] : [],
    tables: kind === 'table' ? [name] : [],
  }
  const [usage, ...rest] = grantTexts(schema, role, only) as [string, ...string[]]
  return {
    code: 'role-privilege-missing',
    object: kind === 'schema' ? 'schema' : `${kind} ${name}`,
    what: 'the role cannot use it.',
    fix: `${rest[0] ?? usage};`,
  }
}

function noRole(role: string): Finding {
  return {
    code: 'role-missing',
    object: `role ${role}`,
    what: 'does not exist on this server.',
    fix: 'Create it, then run what `holdfast grants` prints.',
  }
}

function powerful(role: string): Finding {
  return {
    code: 'role-owner',
    object: `role ${role}`,
    what: 'owns objects of the schema, is a member of their owner, or is a superuser: it can change every table, past the functions.',
    fix: 'Let the application connect as a role of its own, and run what `holdfast grants` prints for it.',
  }
}
