import type { Executor } from '../core/driver.ts'
import { roleFacts } from '../engines/postgres/health/server.ts'
import { alterRole, leaveRole } from '../engines/postgres/schema/role-texts.ts'
import { anotherRole } from '../schema/inspect-owners.ts'
import { finding, type HealthFinding, type OwnCode } from './finding.ts'
import { isTrue } from '../core/is-true.ts'

/** Before this version a role that may create roles could make itself a member of any but superusers. */
const createRoleIsMild = 16

/** A role that it is a member of, itself or by another one, and what that makes of it. */
interface Power {
  readonly power: string
  readonly member: string
  readonly sort: 'superuser' | 'creates roles' | 'reads' | 'writes'
}

const told: Readonly<Record<Power['sort'], readonly [code: OwnCode, what: string]>> = {
  superuser: ['role-superuser', ', a superuser, and can become it: no privilege holds it back.'],
  'creates roles': [
    'role-creates-roles',
    ', which may create roles and make itself a member of the owner.',
  ],
  reads: ['role-reads-all', ': it can read every table past the functions.'],
  writes: ['role-writes-all', ': it can write past the functions.'],
}

/** Powers of the role beside which its privileges mean nothing. */
export async function examineRole(
  executor: Executor,
  role: string,
  version: string,
): Promise<HealthFinding[]> {
  const [facts] = await executor.query(roleFacts(role))
  if (facts === undefined) return []
  const object = `role ${role}`
  const major = Number(/\d+/.exec(version)?.[0])
  if (isTrue(facts['superuser'])) {
    return [
      finding(
        'role-superuser',
        object,
        'is a superuser: no privilege holds it back, and it can change every table past the functions.',
        anotherRole,
      ),
    ]
  }
  const powers = JSON.parse(String(facts['powers'])) as Power[]
  return [
    ...powers
      .filter(({ sort }) => sort !== 'creates roles' || major < createRoleIsMild)
      .map(({ power, member, sort }) => {
        const [code, what] = told[sort]
        return finding(code, object, `is a member of ${power}${what}`, leaveRole(power, member))
      }),
    ...(isTrue(facts['createsRoles']) && major < createRoleIsMild
      ? [
          finding(
            'role-creates-roles',
            object,
            `may create roles, and on PostgreSQL ${major} make itself a member of the owner.`,
            alterRole(role, 'NOCREATEROLE'),
          ),
        ]
      : []),
  ]
}
