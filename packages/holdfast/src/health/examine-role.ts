import type { Executor } from '../core/driver.ts'
import { alterRole, leaveRole, roleFacts } from '../engines/postgres/health-server.ts'
import { finding, type HealthFinding } from './finding.ts'
import { isTrue } from '../core/is-true.ts'

/** Before this version a role that may create roles could make itself a member of any but superusers. */
const createRoleIsMild = 16

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
        alterRole(role, 'NOSUPERUSER'),
      ),
    ]
  }
  const powers = JSON.parse(String(facts['powers'])) as { power: string; member: string }[]
  return [
    ...powers.map(({ power, member }) =>
      finding(
        'role-writes-all',
        object,
        `is a member of ${power}: it can write past the functions.`,
        leaveRole(power, member),
      ),
    ),
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
