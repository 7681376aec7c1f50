import {
  type Setting,
  type SettingLevel,
  type SettingPlace,
  setForRole,
  undoSetting,
} from '../engines/postgres/health/settings.ts'
import { finding, type HealthFinding, notChecked, type OwnCode } from './finding.ts'
import { isOn, lengthOf, millisecondsOf } from './setting-value.ts'

/** Where a value was set, for people. */
const origins: Readonly<Record<SettingLevel, string>> = {
  connection: 'set by the connection',
  'role in database': 'set for the role in this database',
  role: 'set for the role',
  database: 'set for the database',
  'all roles': 'set for all roles',
  'command line': "set on the server's command line",
  file: "set in the server's configuration",
  default: "the server's default",
}

/** What is wrong with the value of a setting, and the value it should have. */
interface Judgement {
  readonly code: OwnCode
  /** Follows the value, after a colon. */
  readonly means: string
  /** As SQL. */
  readonly better: string
  /** Only the role's: the server's default is right for others. */
  readonly forRole?: boolean
}

type Others = (name: string) => Setting | undefined
type Judge = (value: string, others: Others) => Judgement | undefined

const unset = (code: OwnCode, means: string, better: string): Judge => {
  return (value) =>
    millisecondsOf(value) === 0 ? { code, means, better, forRole: true } : undefined
}

const mustBeOn = (code: OwnCode, means: string): Judge => {
  return (value) => (isOn(value) ? undefined : { code, means, better: 'on' })
}

const noVacuum = 'dead rows of the balances are never removed, and every read gets slower.'

/** One judge per setting that matters to any role. */
const judges: Readonly<Record<string, Judge>> = {
  fsync: mustBeOn('fsync-off', 'after a crash of the machine the database may be beyond repair.'),
  full_page_writes: mustBeOn(
    'full-page-writes-off',
    'a page that was half written when the machine crashed stays so, unnoticed.',
  ),
  autovacuum: mustBeOn('autovacuum-off', noVacuum),
  track_counts: mustBeOn('autovacuum-off', `autovacuum has nothing to go by: ${noVacuum}`),
  max_locks_per_transaction: (value) =>
    Number(value) >= 64
      ? undefined
      : {
          code: 'lock-table-small',
          means:
            'a guard of many keys, or a read over many months, may fail with out of shared memory.',
          better: '64',
        },
  default_transaction_isolation: (value) =>
    /^read (un)?committed$/i.test(value)
      ? undefined
      : {
          code: 'isolation-default',
          means:
            'locks.acquire and locks.tryAcquire are refused with LOCK_STALE_SNAPSHOT, unless their transaction names READ COMMITTED. guard, tryGuard and once name it themselves.',
          better: "'read committed'",
        },
  default_transaction_read_only: (value) =>
    isOn(value)
      ? { code: 'read-only-default', means: 'nothing can be written.', better: 'off' }
      : undefined,
  session_replication_role: (value) =>
    value.toLowerCase() === 'replica'
      ? {
          code: 'triggers-off',
          means: 'triggers do not fire, and the movements are no longer append-only.',
          better: 'origin',
        }
      : undefined,
  synchronous_commit: (value, others) => {
    const level = value.toLowerCase()
    if (!['local', 'remote_write', 'remote_apply'].includes(level) && !isOn(level)) {
      return {
        code: 'commits-not-durable',
        means: 'a crash of the server may take back commits that were acknowledged.',
        better: 'on',
      }
    }
    if (level === 'local' && (others('synchronous_standby_names')?.value ?? '') !== '') {
      return {
        code: 'commits-not-replicated',
        means:
          'commits do not wait for the synchronous standbys, and a failover may take them back.',
        better: 'on',
      }
    }
    return undefined
  },
  deadlock_timeout: (value) => {
    const ms = millisecondsOf(value)
    if (ms >= 100 && ms <= 10_000) return undefined
    const means =
      ms < 100
        ? 'every wait that is longer than this searches for deadlocks, under a lock on all locks.'
        : 'a deadlock is not resolved before that.'
    return { code: 'deadlock-timeout-odd', means, better: "'1s'" }
  },
  track_activities: mustBeOn(
    'activity-hidden',
    'nobody can see what a blocker runs, nor for how long.',
  ),
}

/** Those that only make sense for the application's role. */
const roleJudges: Readonly<Record<string, Judge>> = {
  idle_in_transaction_session_timeout: unset(
    'idle-timeout-unset',
    'a process that hangs inside a transaction keeps its locks for ever.',
    "'1min'",
  ),
  statement_timeout: unset(
    'statement-timeout-unset',
    'a statement may run, and keep its locks, for ever. Give jobs that need longer a role of their own.',
    "'30s'",
  ),
  lock_timeout: (value, others) => {
    const ms = millisecondsOf(value)
    if (ms === 0) {
      return {
        code: 'lock-timeout-unset',
        means:
          'your own statements, claims and lease guards wait for locks without an end, and so does the ledger in a transaction of yours. By itself the ledger has a limit of its own (10 s by default), and so have rows, tables and names that are locked through Holdfast (2 s by default).',
        better: "'5s'",
        forRole: true,
      }
    }
    const statement = others('statement_timeout')
    const limit = statement === undefined ? 0 : millisecondsOf(statement.value)
    if (ms <= 60_000 && (limit === 0 || ms < limit)) return undefined
    const means =
      ms > 60_000
        ? 'so long a wait fills the pool before anybody notices.'
        : `statement_timeout (${lengthOf(limit)}) comes first, and hides that it was a lock.`
    return { code: 'lock-timeout-high', means, better: "'5s'", forRole: true }
  },
}

/** Every setting that `examineSettings` wants to know. */
export const settingNames: readonly string[] = [
  ...Object.keys(judges),
  ...Object.keys(roleJudges),
  'synchronous_standby_names',
  'max_connections',
  'superuser_reserved_connections',
  'reserved_connections',
]

/** Judges the settings of one role in one database; without a role, those that all roles get. */
export function examineSettings(
  settings: ReadonlyMap<string, Setting>,
  place: SettingPlace,
): HealthFinding[] {
  const wanted = { ...judges, ...(place.role === undefined ? {} : roleJudges) }
  return Object.entries(wanted).flatMap(([name, judge]): HealthFinding[] => {
    const setting = settings.get(name)
    if (setting === undefined) return [hidden(name)]
    const judgement = judge(setting.value, (other) => settings.get(other))
    if (judgement === undefined) return []
    const { code, means, better, forRole = false } = judgement
    const fix = forRole ? setForRole(setting, better, place) : undoSetting(setting, better, place)
    const what = `is ${setting.value} (${origins[setting.level]}): ${means}`
    return [finding(code, `setting ${name}`, what, fix)]
  })
}

function hidden(name: string): HealthFinding {
  return notChecked(
    'role',
    `setting ${name}`,
    'has a value of its own in this connection, which hides the one that others get.',
    "Connect without that value, or as the application's role.",
  )
}

/** Connections that are free for everybody, of those that are. */
export function examineConnections(
  settings: ReadonlyMap<string, Setting>,
  clients: number,
): HealthFinding[] {
  const number = (name: string): number => Number(settings.get(name)?.value ?? 0)
  const free =
    number('max_connections') -
    number('superuser_reserved_connections') -
    number('reserved_connections')
  if (clients < 0.9 * free) return []
  return [
    finding(
      'connections-short',
      'server',
      `${clients} of the ${free} connections that applications may have are in use.`,
      'Make the pools smaller, or put a pooler in transaction mode before the server (docs/poolers.md).',
    ),
  ]
}
