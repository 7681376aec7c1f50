import type { ObjectKind } from '../engines/postgres/schema/catalogue.ts'
import type { Finding, FindingCode } from '../schema/index.ts'
import type { ClaimFinding } from '../core/errors/error-details.ts'

/**
 * How bad it is. `error`: something is refused, wrong or not protected. `warning`: it will hurt some day.
 * `note`: worth knowing; nothing is wrong.
 */
export type Severity = 'error' | 'warning' | 'note'

/** What a finding is about, in the order they are told. */
export type HealthGroup =
  | 'connection'
  | 'server'
  | 'role'
  | 'schema'
  | 'claims'
  | 'sessions'
  | 'work'

/** The groups, in their order. */
export const healthGroups: readonly HealthGroup[] = [
  'connection',
  'server',
  'role',
  'schema',
  'claims',
  'sessions',
  'work',
]

/** A code of this room's own. */
export type OwnCode =
  | 'standby'
  | 'locks-are-stubs'
  | 'pooler'
  | 'clock-differs'
  | 'server-too-old'
  | 'server-untested'
  | 'fsync-off'
  | 'full-page-writes-off'
  | 'autovacuum-off'
  | 'lock-table-small'
  | 'connections-short'
  | 'slot-unused'
  | 'isolation-default'
  | 'read-only-default'
  | 'triggers-off'
  | 'commits-not-durable'
  | 'commits-not-replicated'
  | 'idle-timeout-unset'
  | 'statement-timeout-unset'
  | 'lock-timeout-unset'
  | 'lock-timeout-high'
  | 'deadlock-timeout-odd'
  | 'activity-hidden'
  | 'role-superuser'
  | 'role-writes-all'
  | 'role-reads-all'
  | 'role-creates-roles'
  | 'long-transaction'
  | 'idle-in-transaction'
  | 'prepared-transaction'
  | 'holds-overdue'
  | 'claims-stranded'
  | 'tick-stuck'
  | 'several-primaries'
  | 'replica-writable'
  | 'log-not-flushed'
  | 'binlog-not-synced'
  | 'doublewrite-off'
  | 'rollback-on-timeout'
  | 'deadlock-detect-off'
  | 'snapshot-isolation-off'
  | 'isolation-repeatable-read'
  | 'isolation-serializable'
  | 'metadata-wait-long'
  | 'performance-schema-off'
  | 'own-table-missing'
  | 'own-table-unfit'
  | 'own-index-missing'
  | 'table-without-transactions'
  | 'lock-rows-many'
  | 'rate-limit-unlogged'

/** Every code of this room's own, with its group and how bad it is. */
export const ownCodes: Readonly<Record<OwnCode, readonly [HealthGroup, Severity]>> = {
  standby: ['connection', 'error'],
  'locks-are-stubs': ['connection', 'error'],
  pooler: ['connection', 'note'],
  'clock-differs': ['connection', 'note'],
  'server-too-old': ['server', 'error'],
  'server-untested': ['server', 'note'],
  'fsync-off': ['server', 'error'],
  'full-page-writes-off': ['server', 'error'],
  'autovacuum-off': ['server', 'warning'],
  'lock-table-small': ['server', 'warning'],
  'connections-short': ['server', 'warning'],
  'slot-unused': ['server', 'warning'],
  'isolation-default': ['role', 'error'],
  'read-only-default': ['role', 'error'],
  'triggers-off': ['role', 'error'],
  'commits-not-durable': ['role', 'warning'],
  'commits-not-replicated': ['role', 'warning'],
  'idle-timeout-unset': ['role', 'warning'],
  'statement-timeout-unset': ['role', 'note'],
  'lock-timeout-unset': ['role', 'note'],
  'lock-timeout-high': ['role', 'note'],
  'deadlock-timeout-odd': ['role', 'warning'],
  'activity-hidden': ['role', 'warning'],
  'role-superuser': ['role', 'error'],
  'role-writes-all': ['role', 'error'],
  'role-reads-all': ['role', 'error'],
  'role-creates-roles': ['role', 'warning'],
  'long-transaction': ['sessions', 'warning'],
  'idle-in-transaction': ['sessions', 'warning'],
  'prepared-transaction': ['sessions', 'warning'],
  'holds-overdue': ['work', 'warning'],
  'claims-stranded': ['work', 'warning'],
  'tick-stuck': ['work', 'warning'],
  'several-primaries': ['connection', 'error'],
  'replica-writable': ['connection', 'error'],
  'log-not-flushed': ['server', 'warning'],
  'binlog-not-synced': ['server', 'warning'],
  'doublewrite-off': ['server', 'error'],
  'rollback-on-timeout': ['server', 'error'],
  'deadlock-detect-off': ['server', 'warning'],
  'snapshot-isolation-off': ['server', 'note'],
  'isolation-repeatable-read': ['server', 'note'],
  'isolation-serializable': ['server', 'warning'],
  'metadata-wait-long': ['server', 'note'],
  'performance-schema-off': ['server', 'warning'],
  'own-table-missing': ['schema', 'error'],
  'own-table-unfit': ['schema', 'error'],
  'own-index-missing': ['schema', 'warning'],
  'table-without-transactions': ['schema', 'warning'],
  'lock-rows-many': ['work', 'note'],
  'rate-limit-unlogged': ['schema', 'note'],
}

/** Of a claimed table. Who examines need not be who claims, so that rights are not judged. */
type ClaimCode = Exclude<ClaimFinding['code'], 'privilege-missing'>

/** What was found: a code of this room, of `inspect` or of claims; or something could not be looked at. */
export type HealthCode = OwnCode | FindingCode | ClaimCode | 'not-checked'

/** One thing that is not as it should be, or that is worth knowing. Plain data. */
export interface HealthFinding {
  readonly code: HealthCode
  readonly severity: Severity
  readonly group: HealthGroup
  /** What it is about: `setting fsync`, `session 4711`, `role app`, `column account.key`. */
  readonly object: string
  /** One sentence, with what was measured. */
  readonly what: string
  /** SQL to run, or a sentence where there is none. */
  readonly fix: string
}

export function finding(code: OwnCode, object: string, what: string, fix: string): HealthFinding {
  const [group, severity] = ownCodes[code]
  return { code, severity, group, object, what, fix }
}

/** Something that this connection cannot be asked: never the same as being well. */
export function notChecked(
  group: HealthGroup,
  object: string,
  what: string,
  fix: string,
): HealthFinding {
  return { code: 'not-checked', severity: 'note', group, object, what, fix }
}

/** An object that is not as a fresh installation has it. */
type Drift = `${ObjectKind}-${'missing' | 'extra' | 'changed'}`

/** What `inspect` finds beside drift. */
export const schemaSeverities: Readonly<Record<Exclude<FindingCode, Drift>, Severity>> = {
  'schema-missing': 'error',
  'file-missing': 'error',
  'file-newer': 'error',
  'file-changed': 'error',
  'file-leftover': 'warning',
  'index-invalid': 'error',
  'trigger-disabled': 'error',
  'months-missing': 'warning',
  'object-owner': 'error',
  'function-security': 'error',
  'function-search-path': 'error',
  'public-privilege': 'error',
  'role-missing': 'error',
  'role-owner': 'error',
  'role-privilege-missing': 'error',
  'role-privilege-extra': 'error',
}

/** How bad drift is: what is not ours only stands around. */
export const driftSeverities = { missing: 'error', changed: 'error', extra: 'warning' } as const

/** What the check of a claimed table finds: claims would not work at all, or be slow or surprising. */
export const claimSeverities: Readonly<Record<ClaimCode, Severity>> = {
  'table-missing': 'error',
  'column-missing': 'error',
  'column-nullable': 'error',
  'column-unfit': 'error',
  'table-type': 'error',
  'column-name': 'error',
  'key-type': 'error',
  'key-not-unique': 'error',
  'column-type': 'warning',
  'index-missing': 'warning',
}

export function ofSchema({ code, object, what, fix }: Finding): HealthFinding {
  const kind = code.slice(code.lastIndexOf('-') + 1) as keyof typeof driftSeverities
  const own: Readonly<Record<string, Severity>> = schemaSeverities
  const severity = own[code] ?? driftSeverities[kind]
  const group = code.startsWith('role-') ? 'role' : 'schema'
  return { code, severity, group, object, what, fix }
}

export function ofClaims({ code: found, object, what, fix }: ClaimFinding): HealthFinding {
  const code = found as ClaimCode
  return { code, severity: claimSeverities[code], group: 'claims', object, what, fix }
}
