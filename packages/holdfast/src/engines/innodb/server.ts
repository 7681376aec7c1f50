import type { Driver, Executor, Row } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { processWide } from '../../core/process-wide.ts'
import { endedTransaction, isWaitOver } from './errno.ts'

/** What is asked of a server once. None of it opens a snapshot, so that it may be asked in anybody's transaction. */
const variables = `SHOW VARIABLES WHERE Variable_name IN
  ('version', 'read_only', 'innodb_read_only', 'wsrep_on', 'group_replication_group_name',
   'group_replication_single_primary_mode', 'innodb_rollback_on_timeout',
   'character_set_client', 'character_set_results')`
const clusterSize = `SHOW STATUS LIKE 'wsrep_cluster_size'`
const database = 'SELECT DATABASE() AS name'

export interface ServerFacts {
  readonly dialect: 'mariadb' | 'mysql'
  /** Where tables without a database are looked for; nothing if the connection has chosen none. */
  readonly database: string | undefined
  /** A replica: what is locked here nobody sees who writes. */
  readonly isReadOnly: boolean
  /** A node of Galera. Alone it is one primary, until another one joins. */
  readonly isGalera: boolean
  /** A wait that the server ends takes the whole transaction with it, and not the statement alone. */
  readonly rollsBackOnTimeout: boolean
  /** In which texts go to the server and come back: of characters that they have not, each becomes a `?`. */
  readonly charsets: readonly string[]
}

const known = /* @__PURE__ */ processWide(
  'innodb-servers/1',
  () => new WeakMap<object, ServerFacts>(),
)

/** What is known of the server of a driver, or of its statements on their own. */
export function knownServer(driver: object): ServerFacts | undefined {
  return known.get(driver)
}

/**
 * What kind of server it is. A replica is asked again every time, because it may become the primary, and a node of Galera
 * because another one may have joined.
 *
 * @throws ENGINE_VERSION, ENGINE_SEVERAL_PRIMARIES
 */
export async function serverOf(
  driver: Pick<Driver<never>, 'alone'>,
  executor: Executor,
): Promise<ServerFacts> {
  const facts = known.get(driver)
  if (facts?.isGalera === true) await assertAlone(executor)
  if (facts !== undefined) return facts
  const rows = await executor.query({ text: variables, values: [] })
  const settings = new Map(rows.map(({ Variable_name: name, Value: value }) => [name, value]))
  const version = String(settings.get('version'))
  const dialect = dialectIn(version)
  assertVersion(version, dialect)
  const isGalera = isOn(settings.get('wsrep_on'))
  if (isGalera) await assertAlone(executor)
  const group = settings.get('group_replication_group_name')
  const isOnePrimary = isOn(settings.get('group_replication_single_primary_mode'))
  if (typeof group === 'string' && group !== '' && !isOnePrimary) throw severalPrimaries()
  const [named] = await executor.query({ text: database, values: [] })
  const found: ServerFacts = {
    dialect,
    database: typeof named?.['name'] === 'string' ? named['name'] : undefined,
    isReadOnly: isOn(settings.get('read_only')) || isOn(settings.get('innodb_read_only')),
    isGalera,
    rollsBackOnTimeout: isOn(settings.get('innodb_rollback_on_timeout')),
    charsets: ['character_set_client', 'character_set_results']
      .map((name) => settings.get(name))
      .filter((charset) => typeof charset === 'string' && charset !== '') as string[],
  }
  if (!found.isReadOnly) for (const each of [driver, driver.alone]) known.set(each, found)
  return found
}

/** A connection has found out that the server is another one by now. */
export function forgetServer(driver: Pick<Driver<never>, 'alone'>): void {
  for (const each of [driver, driver.alone]) known.delete(each)
}

/**
 * Whether a server that is set up as this one has ended the whole transaction with this error. A wait for a table's
 * definition ends with the same number as one for a row, and ends nothing: what is taken for ended is rolled back by us.
 */
export function hasEnded(driver: object, error: unknown): boolean {
  if (endedTransaction(error)) return true
  return isWaitOver(error) && known.get(driver)?.rollsBackOnTimeout === true
}

/** Which of the two a version is of. */
export function dialectIn(version: string): ServerFacts['dialect'] {
  return /mariadb/i.test(version) ? 'mariadb' : 'mysql'
}

function isOn(value: unknown): boolean {
  return value === 'ON' || value === '1'
}

/** The oldest that are supported; what comes before had other locking reads. */
const oldest = { mariadb: [10, 11], mysql: [8, 4] } as const

function assertVersion(version: string, dialect: ServerFacts['dialect']): void {
  // Behind some proxies MariaDB calls itself 5.5.5-10.11.6-MariaDB.
  const [, major, minor] = /^(?:5\.5\.5-)?(\d+)\.(\d+)/.exec(version) ?? []
  if (major === undefined || minor === undefined) {
    const subject =
      'what was answered to SHOW VARIABLES has no version; see what the pool makes of rows'
    throw holdfastError('ENGINE_VERSION', { details: { subject } })
  }
  const [leastMajor, leastMinor] = oldest[dialect]
  const isNewer = Number(major) > leastMajor
  if (isNewer || (Number(major) === leastMajor && Number(minor) >= leastMinor)) return
  const subject = `${dialect} ${major}.${minor}`
  throw holdfastError('ENGINE_VERSION', { details: { subject } })
}

async function assertAlone(executor: Executor): Promise<void> {
  const [row]: readonly Row[] = await executor.query({ text: clusterSize, values: [] })
  if (Number(row?.['Value'] ?? 0) > 1) throw severalPrimaries()
}

function severalPrimaries(): Error {
  return holdfastError('ENGINE_SEVERAL_PRIMARIES', { details: { subject: 'this cluster' } })
}
