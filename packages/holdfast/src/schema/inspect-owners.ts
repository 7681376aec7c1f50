import type { Executor } from '../core/driver.ts'
import { leaveRole } from '../engines/postgres/schema/role-texts.ts'
import { misplacedFrom, readMisplaced, type RolePower } from '../engines/postgres/schema/owners.ts'
import { noSearchPath } from '../engines/postgres/schema/privileges.ts'
import type { Finding } from './finding.ts'

/** Where an attribute or an ownership is the role's by right: it may be the one that administers the server. */
export const anotherRole =
  'Let the application connect as a role of its own, and run what `holdfast grants` prints for it.'

/** Whether one role owns the schema and everything in it. What the application's role owns is told by `ownedBy`. */
export async function inspectOwners(
  executor: Executor,
  schema: string,
  role: string | undefined,
): Promise<Finding[]> {
  await executor.query(noSearchPath)
  const misplaced = misplacedFrom(await executor.query(readMisplaced(schema)))
  return misplaced
    .filter(({ owner }) => owner !== role)
    .map(({ object, owner, rightful, give }) => ({
      code: 'object-owner',
      object,
      what: `belongs to ${owner} instead of ${rightful}: ${owner} can go around the functions, and functions that have the rights of another role fail.`,
      fix: give,
    }))
}

/** Why the application's role can do what an owner can; each reason has its own way out. */
export async function ownedBy(
  executor: Executor,
  schema: string,
  role: string,
  { superuser, ownsSchema, memberships }: RolePower,
): Promise<Finding[]> {
  const finding = (what: string, fix: string): Finding => ({
    code: 'role-owner',
    object: `role ${role}`,
    what: `${what}: it can change every table, past the functions.`,
    fix,
  })
  if (superuser) return [finding('is a superuser', anotherRole)]
  const own = misplacedFrom(await executor.query(readMisplaced(schema))).filter(
    ({ owner }) => owner === role,
  )
  const found = [
    ...(ownsSchema && own.length === 0 ? [finding('owns the schema', anotherRole)] : []),
    ...(own.length === 0
      ? []
      : [
          finding(
            `owns ${own.map(({ object }) => object).join(', ')}`,
            `${own.map(({ give }) => give).join(' ')} then run what \`holdfast grants\` prints.`,
          ),
        ]),
    ...memberships.map(({ owner, member }) =>
      finding(
        member === role
          ? `is a member of ${owner}, which owns objects of the schema`
          : `is a member of ${member}, and so of ${owner}, which owns objects of the schema`,
        leaveRole(owner, member),
      ),
    ),
  ]
  return found.length > 0 ? found : [finding('has the rights of the owner', anotherRole)]
}
