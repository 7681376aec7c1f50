import { claimsOver } from '../claims/claims.ts'
import type { ClaimsOptions } from '../claims/layout.ts'
import { blockingOver } from '../blocking/blocking.ts'
import type { ObservedSession } from '../blocking/model.ts'
import { assertDriver } from '../core/client-kind.ts'
import type { Executor } from '../core/driver.ts'
import { isHoldfastError } from '../core/errors.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { innodbClaims } from '../engines/innodb/claims/claims-engine.ts'
import type { InnodbDriver } from '../engines/innodb/driver.ts'
import { isDenied, waitEndedBy } from '../engines/innodb/errno.ts'
import { faultsOfOwnTables } from '../engines/innodb/health/own-tables.ts'
import {
  addIndex,
  clusterSize,
  followed,
  forgetIdleLocks,
  globalRights,
  readSettings,
  roughSize,
  settingsFrom,
  tablesWithoutTransactions,
  takeBack,
  toInnodb,
  whichDatabase,
  writesAnyway,
} from '../engines/innodb/health/server.ts'
import { innodbBlocking } from '../engines/innodb/observe/looking.ts'
import { lockTable } from '../engines/innodb/schema/lock-table.ts'
import { dialectIn } from '../engines/innodb/server.ts'
import {
  finding,
  type HealthFinding,
  type HealthGroup,
  healthGroups,
  notChecked,
  ofClaims,
} from './finding.ts'
import { examineInnodbSettings } from './innodb-settings.ts'
import { isOn, lengthOf } from './setting-value.ts'
import type { ClaimFinding } from '../core/errors/error-details.ts'

/** From when on something counts as left behind, in milliseconds. */
export interface HealthLimits {
  /** A transaction is long. @defaultValue 300000, five minutes */
  readonly transactionMs?: number
  /** A session is idle in its transaction, or a prepared transaction waits. @defaultValue 60000 */
  readonly idleMs?: number
}

/** What is looked at. */
export interface HealthOptions {
  /** The database that the tables of Holdfast are in. @defaultValue the one that the connections have chosen */
  readonly database?: string
  /** The account that the application connects as, as GRANT writes it: `'app'@'%'`. */
  readonly role?: string
  /** Tables of yours that rows are claimed from, as `hf.claims` is given them. */
  readonly claims?: readonly Omit<ClaimsOptions, 'bucket' | 'perKey'>[]
  readonly limits?: HealthLimits
}

/** One look takes no longer; whatever does is said not to have been checked. */
const statementLimitMs = 5_000
/** Claims with a lease look at their table. */
interface CheckedClaims {
  check(): Promise<readonly ClaimFinding[]>
}

/** So many are told of one by one. */
const listedMost = 5
/** More names than this were locked some day; those that are idle can go. */
const manyLocks = 100_000

/**
 * Looks at what Holdfast's guarantees rest on, on MariaDB and MySQL: the server and its settings, its place among others,
 * the tables, and what is left behind. An empty list means that all is well. Changes nothing; what this connection
 * may not look at is a finding `not-checked`.
 *
 * @example
 * for (const { severity, object, what, fix } of await examine(fromMysql2(pool))) {
 *   console.log(`${severity}: ${object} ${what}\n  ${fix}`)
 * }
 * @throws OPTION_INVALID, ENGINE_MISMATCH
 */
export async function examine<Tx>(
  driver: InnodbDriver<Tx>,
  given: HealthOptions = {},
): Promise<readonly HealthFinding[]> {
  assertDriver(driver, 'examine of holdfast/mysql', 'innodb')
  const { role, claims = [], limits = {}, ...options } = optionsGiven(given, healthOptions)
  const { transactionMs = 300_000, idleMs = 60_000 } = limits
  const { alone } = driver
  const settings = settingsFrom(await alone.query(readSettings))
  const [chosen] = await alone.query(whichDatabase)
  const named = chosen?.['name']
  const database = options.database ?? (typeof named === 'string' ? named : undefined)
  const parts: (() => Promise<HealthFinding[]>)[] = [
    async () => [
      ...examineVersion(settings.get('version') ?? ''),
      ...examineInnodbSettings(settings),
    ],
    () => orNotChecked('connection', 'server', () => examinePlace(alone, settings)),
    () => orNotChecked('connection', 'replication', () => examineFollowed(alone, settings)),
    ...(role === undefined
      ? []
      : [() => orNotChecked('role', `account ${role}`, () => examineAccount(alone, role))]),
    () => orNotChecked('schema', 'tables', () => examineTables(alone, database)),
    () =>
      orNotChecked('sessions', 'sessions', async () => {
        const looking = { statementTimeoutMs: statementLimitMs }
        const blocking = blockingOver(innodbBlocking(database), driver, looking)
        const { longest } = await blocking.transactions({ limit: 1_000 })
        return examineSessions(longest, { transactionMs, idleMs })
      }),
    ...claims.map((options) => async () => {
      const object = `table ${typeof options.table === 'string' ? options.table : options.table.table}`
      return await orNotChecked('claims', object, async () => {
        const over = claimsOver<Tx, unknown>(innodbClaims, driver, options) as CheckedClaims
        return (await over.check()).map(ofClaims)
      })
    }),
  ]
  const findings: HealthFinding[] = []
  for (const part of parts) findings.push(...(await part()))
  return healthGroups.flatMap((group) => findings.filter((each) => each.group === group))
}

const healthOptions: KnownOptions<HealthOptions> = {
  database: 'text',
  role: 'text',
  claims: 'list',
  limits: { transactionMs: 'number', idleMs: 'number' },
}

/** The versions our suites run on, and those in between. */
const tested = { mariadb: [1_011, 1_199], mysql: [804, 999] } as const

function examineVersion(version: string): HealthFinding[] {
  const dialect = dialectIn(version)
  const product = dialect === 'mariadb' ? 'MariaDB' : 'MySQL'
  const [, major = '0', minor = '0'] = /^(?:5\.5\.5-)?(\d+)\.(\d+)/.exec(version) ?? []
  const number = Number(major) * 100 + Number(minor)
  const [oldest, newest] = tested[dialect]
  const is = `is ${product} ${major}.${minor}`
  if (number < oldest) {
    const least = dialect === 'mariadb' ? '10.11' : '8.4'
    const what = `${is}, and Holdfast needs ${product} ${least} or later.`
    return [
      finding(
        'server-too-old',
        'server',
        what,
        `Upgrade the server to ${product} ${least} or later.`,
      ),
    ]
  }
  if (number <= newest) return []
  return [
    finding(
      'server-untested',
      'server',
      `${is}, on which Holdfast was not tested.`,
      'Run your tests against it.',
    ),
  ]
}

type Settings = ReturnType<typeof settingsFrom>

/** Whether it is the one server that takes writes. */
async function examinePlace(executor: Executor, settings: Settings): Promise<HealthFinding[]> {
  const found: HealthFinding[] = []
  if (isOn(settings.get('read_only') ?? '') || isOn(settings.get('innodb_read_only') ?? ''))
    found.push(
      finding(
        'standby',
        'server',
        'is read-only: it takes no writes, and its locks exclude nobody on the primary.',
        'Connect to the primary.',
      ),
    )
  const isGroup = (settings.get('group_replication_group_name') ?? '') !== ''
  const hasOnePrimary = isOn(settings.get('group_replication_single_primary_mode') ?? '')
  let several = isGroup && !hasOnePrimary
  if (isOn(settings.get('wsrep_on') ?? '')) {
    const [row] = await executor.query(clusterSize)
    several ||= Number(row?.['Value'] ?? 0) > 1
  }
  if (several)
    found.push(
      finding(
        'several-primaries',
        'server',
        'is one of several that take writes: a lock on one of them excludes nobody on the others, and Holdfast refuses it.',
        'Use one primary: single-primary mode of group replication, or a server without Galera.',
      ),
    )
  return found
}

/** A server that follows another one and takes writes all the same. */
async function examineFollowed(executor: Executor, settings: Settings): Promise<HealthFinding[]> {
  if (isOn(settings.get('read_only') ?? '')) return []
  const rows = await executor.query(followed)
  if (rows.length === 0) return []
  return [
    finding(
      'replica-writable',
      'server',
      'follows another server and takes writes: its locks exclude nobody there.',
      'Connect to the primary, and set read_only on this server. If it is the primary, end its replication: RESET REPLICA ALL.',
    ),
  ]
}

async function examineAccount(executor: Executor, account: string): Promise<HealthFinding[]> {
  const rows = await executor.query(globalRights(account))
  const object = `account ${account}`
  if (rows.length === 0)
    return [
      notChecked(
        'role',
        object,
        'is not there, or its rights are not shown to this connection.',
        "Name it as GRANT does, 'app'@'%', and connect as an account that may read the database mysql.",
      ),
    ]
  return rows
    .map(({ name }) => String(name))
    .filter((name) => writesAnyway.has(name))
    .map((right) =>
      finding(
        'role-superuser',
        object,
        `has ${right}: it writes and locks also where the server is read-only, so that after a failover two servers take its work.`,
        takeBack(right, account),
      ),
    )
}

async function examineTables(
  executor: Executor,
  database: string | undefined,
): Promise<HealthFinding[]> {
  if (database === undefined)
    return [
      notChecked(
        'schema',
        'tables',
        'of Holdfast were not looked at: the connection has chosen no database.',
        'Name one in the URL, or with { database }.',
      ),
    ]
  const found: HealthFinding[] = []
  for (const fault of await faultsOfOwnTables(executor, database)) {
    const object = `table ${fault.table}`
    if (fault.kind === 'index')
      found.push(
        finding(
          'own-index-missing',
          object,
          `has no index on ${fault.columns.join(', ')}: each look reads all of it, and locks what it reads.`,
          addIndex(database, fault.table, fault.columns),
        ),
      )
    else if (fault.kind === 'missing')
      found.push(finding('own-table-missing', object, 'is not there.', migrateText))
    else
      found.push(
        finding(
          'own-table-unfit',
          object,
          'is not as Holdfast makes it: another engine than InnoDB, another key, or another collation, with which two names may be one.',
          `Rename it, then ${migrateText.replace(/^R/, 'r')}`,
        ),
      )
  }
  const others = await executor.query(
    tablesWithoutTransactions(database, listedMost, statementLimitMs),
  )
  const more = Number(others[0]?.['found'] ?? 0) - others.length
  others.forEach((row, at) => {
    const name = String(row['name'])
    const rest = at === others.length - 1 && more > 0 ? ` ${more} more are not listed.` : ''
    found.push(
      finding(
        'table-without-transactions',
        `table ${name}`,
        `is of the engine ${String(row['engine'])}: what is written into it stays after a ROLLBACK, and its rows cannot be locked.${rest}`,
        toInnodb(database, name),
      ),
    )
  })
  const [size] = await executor.query(roughSize(database, 'holdfast_lock'))
  const rows = Number(size?.['found'] ?? 0)
  if (rows > manyLocks)
    found.push(
      finding(
        'lock-rows-many',
        'table holdfast_lock',
        `has about ${rows} rows, one for each key that was ever locked. Those that were idle for a day can go, in pieces:`,
        forgetIdleLocks(lockTable(database)),
      ),
    )
  return found
}

const migrateText = 'Run `holdfast migrate`, or migrate() of holdfast/mysql.'

function examineSessions(
  longest: readonly ObservedSession[],
  { transactionMs, idleMs }: Required<HealthLimits>,
): HealthFinding[] {
  const old = longest.filter(
    (session) =>
      (session.transactionMs ?? 0) > transactionMs ||
      // No session has a prepared one, and so none will end it.
      ((session.state.startsWith('idle') || session.pid === 0) && session.stateMs > idleMs),
  )
  const more = old.length - listedMost
  return old.slice(0, listedMost).map((session, at) => {
    const { pid, user, application, state, stateMs, transactionMs: openMs = 0 } = session
    if (pid === 0)
      return finding(
        'prepared-transaction',
        'prepared transactions',
        `have no session that could end them, the oldest for ${lengthOf(openMs)}, and keep their locks. Unless whoever coordinates them still knows them:`,
        'Run XA RECOVER, which lists them, and XA ROLLBACK each.',
      )
    const who = `of ${[user, application].filter((name) => name !== '').join(', ')}`
    const rest = at === listedMost - 1 && more > 0 ? ` ${more} more are not listed.` : ''
    return state.startsWith('idle') && stateMs > idleMs
      ? finding(
          'idle-in-transaction',
          `session ${pid}`,
          `${who} has done nothing for ${lengthOf(stateMs)} inside an open transaction, and keeps its locks.${rest}`,
          endText(pid),
        )
      : finding(
          'long-transaction',
          `session ${pid}`,
          `${who} has had a transaction open for ${lengthOf(openMs)}; old versions of rows are kept for it.${rest}`,
          endText(pid),
        )
  })
}

/** KILL by itself would end whatever the session is in by then. */
function endText(pid: number): string {
  return `Run \`holdfast cancel ${pid} --terminate\`, which ends it only in that transaction.`
}

async function orNotChecked(
  group: HealthGroup,
  object: string,
  body: () => Promise<HealthFinding[]>,
): Promise<HealthFinding[]> {
  try {
    return await body()
  } catch (error) {
    if (isHoldfastError(error, 'OBSERVE_RIGHT_MISSING')) {
      const { subject } = error.details as { readonly subject: string }
      return [notChecked(group, object, 'of others are not shown to this account.', `${subject};`)]
    }
    // The finding about the setting says so.
    if (isHoldfastError(error, 'OBSERVE_NOT_SHOWN')) return []
    if (isDenied(error))
      return [
        notChecked(
          group,
          object,
          'may not be looked at by this account.',
          'Connect as an account that may.',
        ),
      ]
    const isSlow = isHoldfastError(error, 'OBSERVE_TIMEOUT') || waitEndedBy(error) === 'ours'
    if (!isSlow) throw error
    return [
      notChecked(
        group,
        object,
        `took longer than ${statementLimitMs / 1_000} s to look at.`,
        'Try again when the server has less to do.',
      ),
    ]
  }
}
