import type { ClaimsOptions } from '../claims/layout.ts'
import type { Driver, Executor } from '../core/driver.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { countClients, limitStatements, serverFacts } from '../engines/postgres/health/server.ts'
import { readSettings, settingsFrom } from '../engines/postgres/health/settings.ts'
import { inspect } from '../schema/index.ts'
import { schemaName } from '../schema/schema-name.ts'
import {
  examineClock,
  examineLocks,
  examinePooler,
  examineVersion,
  standby,
} from './examine-connection.ts'
import { examineRole } from './examine-role.ts'
import { examinePrepared, examineSlots, examineTransactions } from './examine-sessions.ts'
import { examineConnections, examineSettings, settingNames } from './examine-settings.ts'
import {
  examineClaims,
  examineHolds,
  examineLimits,
  examineStranded,
  examineTicks,
  examineVacuum,
  workTable,
} from './examine-work.ts'
import {
  type HealthFinding,
  type HealthGroup,
  healthGroups,
  notChecked,
  ofSchema,
} from './finding.ts'
import { isTrue } from '../core/is-true.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

/** From when on something counts as left behind, in milliseconds. */
export interface HealthLimits {
  /** A transaction is long. @defaultValue 300000, five minutes */
  readonly transactionMs?: number
  /** A session is idle in its transaction, or a prepared transaction waits. @defaultValue 60000 */
  readonly idleMs?: number
  /** Holds, claims and ticks are overdue without anybody looking. @defaultValue 600000 */
  readonly overdueMs?: number
}

/** What is looked at. */
export interface HealthOptions {
  /** @defaultValue 'holdfast' */
  readonly schema?: string
  /** The role the application connects as: its privileges and its settings are looked at. */
  readonly role?: string
  /** Tables of yours that rows are claimed from, as `hf.claims` is given them. */
  readonly claims?: readonly ClaimsOptions[]
  readonly limits?: HealthLimits
}

/** One look takes no longer; whatever does is said not to have been checked. */
const statementLimitMs = 5_000

/**
 * Looks at everything that Holdfast's guarantees rest on: the schema, the application's role, the
 * settings of the server, what stands in between, and what is left behind. An empty list means that all
 * is well. Changes nothing; what this connection may not look at is a finding `not-checked`.
 *
 * @example
 * for (const { severity, object, what, fix } of await examine(fromPg(pool), { role: 'app' })) {
 *   console.log(`${severity}: ${object} ${what}\n  ${fix}`)
 * }
 * @throws OPTION_INVALID
 */
export async function examine<Tx>(
  driver: Driver<Tx>,
  options: HealthOptions = {},
): Promise<readonly HealthFinding[]> {
  assertDriver(driver, 'examine')
  const asked = optionsGiven(options, healthOptions)
  const findings: HealthFinding[] = []
  for (const part of await partsFor(driver, asked)) findings.push(...(await part()))
  // A superuser owns everything; one finding says it better than two.
  const isSuperuser = findings.some(({ code }) => code === 'role-superuser')
  const told = findings.filter(({ code }) => !(isSuperuser && code === 'role-owner'))
  return healthGroups.flatMap((group) => told.filter((each) => each.group === group))
}

const healthLimits: KnownOptions<HealthLimits> = {
  transactionMs: 'number',
  idleMs: 'number',
  overdueMs: 'number',
}

const healthOptions: KnownOptions<HealthOptions> = {
  schema: 'text',
  role: 'text',
  claims: 'list',
  limits: healthLimits,
}

type Part = () => Promise<HealthFinding[]>

async function partsFor<Tx>(driver: Driver<Tx>, options: HealthOptions): Promise<Part[]> {
  const { role, claims = [], limits = {} } = options
  const { transactionMs = 300_000, idleMs = 60_000, overdueMs = 600_000 } = limits
  const schema = schemaName(options.schema)
  const [facts] = await driver.alone.query(serverFacts(role))
  const version = String(facts?.['version'])
  // Of a role that is not there, `inspect` says so; there is nothing else to say.
  const known = isTrue(facts?.['roleExists']) ? role : undefined
  const place = { role: known, database: String(facts?.['database']) }
  const settings = settingsFrom(await driver.alone.query(readSettings(settingNames, known)))
  const look =
    (
      group: HealthGroup,
      object: string,
      body: (executor: Executor) => Promise<HealthFinding[]>,
    ): Part =>
    () =>
      orNotChecked(group, object, () => briefly(driver, body))
  return [
    async () => (isTrue(facts?.['standby']) ? [standby] : await examineLocks(driver)),
    () => examinePooler(driver),
    () => examineClock(driver),
    async () => [...examineVersion(version), ...examineSettings(settings, place)],
    look('server', 'connections', async (executor) => {
      const [row] = await executor.query(countClients)
      return examineConnections(settings, Number(row?.['clients']))
    }),
    look('server', 'replication slots', examineSlots),
    role === undefined
      ? async () => [roleNotNamed]
      : look('role', `role ${role}`, (executor) => examineRole(executor, role, version)),
    () =>
      orNotChecked('schema', 'schema', async () => {
        const found = await inspect(driver, { schema, ...(role === undefined ? {} : { role }) })
        return found.map(ofSchema)
      }),
    look('sessions', 'sessions', (executor) =>
      examineTransactions(executor, { openMs: transactionMs, idleMs }),
    ),
    look('sessions', 'prepared transactions', (executor) => examinePrepared(executor, idleMs)),
    look('server', 'tables', (executor) => examineVacuum(executor, schema)),
    look('schema', 'table rate_limit', (executor) => examineLimits(executor, schema)),
    look('work', 'holds', (executor) => examineHolds(executor, schema, overdueMs)),
    look('work', 'schedules', (executor) => examineTicks(executor, schema, overdueMs)),
    look('work', 'table work', (executor) =>
      examineStranded(executor, workTable(schema), overdueMs),
    ),
    ...claims.map(
      (table): Part =>
        async () => {
          const object = `table ${typeof table.table === 'string' ? table.table : table.table.table}`
          const found = await orNotChecked('claims', object, () => examineClaims(driver, table))
          // Rows of a table that lacks a column cannot be asked for it.
          const isUsable = found.every(({ severity }) => severity === 'warning')
          const stranded = look('work', object, (executor) =>
            examineStranded(executor, table, overdueMs),
          )
          return isUsable ? [...found, ...(await stranded())] : found
        },
    ),
  ]
}

const roleNotNamed = notChecked(
  'role',
  "the application's role",
  'was not named: its privileges and timeouts were not looked at.',
  'Name it: `holdfast doctor --role app`, or examine(driver, { role }).',
)

/** In a transaction of its own, so that one look that is refused does not end the others. */
function briefly<Tx, T>(driver: Driver<Tx>, body: (executor: Executor) => Promise<T>): Promise<T> {
  return driver.transaction(
    async (transaction) => {
      await transaction.query(limitStatements(statementLimitMs))
      return await body(transaction)
    },
    { scopes: [] },
  )
}

/** By SQLSTATE: why this was not looked at, and what to do. */
const reasons: Readonly<Record<string, readonly [what: string, fix: string]>> = {
  '42501': ['may not be looked at by this role.', 'Connect as the owner of the schema.'],
  '57014': [
    `took longer than ${statementLimitMs / 1_000} s to look at.`,
    'Try again when the server has less to do.',
  ],
}

/** Tables and views that are not there: `inspect` says what is missing. */
const notThere: ReadonlySet<string | undefined> = new Set(['42P01', '42703', '3F000'])

async function orNotChecked(
  group: HealthGroup,
  object: string,
  body: () => Promise<HealthFinding[]>,
): Promise<HealthFinding[]> {
  try {
    return await body()
  } catch (error) {
    const state = sqlStateOf(error)
    if (notThere.has(state)) return []
    const reason = reasons[state ?? '']
    if (reason === undefined) throw error
    return [notChecked(group, object, ...reason)]
  }
}
