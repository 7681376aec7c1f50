import type { Transaction } from '../core/driver.ts'
import {
  grantTexts,
  type HeldPrivilege,
  noSearchPath,
  privilegesFrom,
  readMissingPrivileges,
  readPrivileges,
} from '../engines/postgres/schema/privileges.ts'
import { lookForRole, powerFrom } from '../engines/postgres/schema/owners.ts'
import type { Finding } from './finding.ts'
import { ownedBy } from './inspect-owners.ts'
import { appObjects } from './grants.ts'
import type { SchemaFiles } from './schema-files.ts'

/** Nobody but the owner has any right here, except the application's role those it needs. */
export async function inspectPrivileges<Tx>(
  transaction: Transaction<Tx>,
  files: SchemaFiles,
  schema: string,
  role: string | undefined,
): Promise<Finding[]> {
  await transaction.query(noSearchPath)
  const app = appObjects(files)
  const held = privilegesFrom(await transaction.query(readPrivileges(schema, role, app)))
  const byEveryone = merged(held.filter(({ everyone }) => everyone)).map(
    ({ object, privileges, fix }): Finding => ({
      code: 'public-privilege',
      object,
      what: `everyone (PUBLIC) has ${privileges}.`,
      fix,
    }),
  )
  if (role === undefined) return [...byEveryone, ...waysPast(held)]
  const [found] = await transaction.query(lookForRole(schema, role))
  if (found === undefined) return [...byEveryone, noRole(role)]
  const power = powerFrom(found)
  if (power.owns) {
    return [...byEveryone, ...(await ownedBy(transaction, schema, role, power))]
  }
  const extra = held.filter((privilege) => privilege.own && !privilege.meant)
  const missing = await transaction.query(readMissingPrivileges(schema, role, app))
  return [
    ...byEveryone,
    ...waysPast(held.filter((one) => makesObjects(one) && !one.own)),
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

/** Whoever may put a function into the schema has the owner's functions call it. */
function makesObjects({ kind, privilege }: HeldPrivilege): boolean {
  return kind === 'schema' && privilege === 'CREATE'
}

/** Rights of any role to change something past the functions. Those who may only look are nobody's business here. */
function waysPast(held: readonly HeldPrivilege[]): Finding[] {
  const wrong = held.filter(
    (one) => one.holder !== undefined && one.privilege !== 'SELECT' && !one.meant,
  )
  return [...new Set(wrong.map(({ holder }) => holder))].flatMap((holder) =>
    merged(wrong.filter((one) => one.holder === holder)).map(
      ({ object, privileges, fix }): Finding => ({
        code: 'role-privilege-extra',
        object,
        what: `the role ${holder} has ${privileges}: the functions are the only way in.`,
        fix,
      }),
    ),
  )
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
      // One grant option may have let several rights be passed on.
      fix: [...new Set(own.map(({ revoke }) => revoke))].join(' '),
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
