import {
  innodbBinaries,
  type InnodbServerName,
  startInnodb,
  startPostgres,
} from '@holdfast/testkit'

/** Database products that a scenario may run on. */
export const engineNames = ['postgres', 'mariadb', 'mysql', 'sqlite'] as const
export type EngineName = (typeof engineNames)[number]

/** A server of this process, which ends with it. */
export interface EngineServer extends AsyncDisposable {
  /** A new, empty database; gives its URL, which says what product it is of. */
  createDatabase(prefix: string): Promise<string>
  /** How long it lets a session be idle in a transaction, if that was asked for. */
  readonly idleMs: number
}

/** The newest of those that are installed. */
const servers: Readonly<Record<'mariadb' | 'mysql', readonly InnodbServerName[]>> = {
  mariadb: ['mariadb-11', 'mariadb-10'],
  mysql: ['mysql-9'],
}

/** The newest server of a product that is installed; the first of them if none is. */
export function newestServer(product: keyof typeof servers): InnodbServerName {
  const installed = servers[product].find((each) => innodbBinaries(each) !== undefined)
  return installed ?? (servers[product][0] as InnodbServerName)
}

/**
 * Starts a server that takes many connections. With `idleMs` it ends sessions that are idle in a transaction for so long:
 * those of MariaDB count in seconds, and MySQL ends any session that is idle. PostgreSQL looks for deadlocks after
 * `deadlockMs`, the others at once.
 */
export async function startEngine(
  engine: EngineName,
  { idleMs, deadlockMs }: { readonly idleMs?: number; readonly deadlockMs?: number } = {},
): Promise<EngineServer> {
  if (engine === 'sqlite') throw new Error('SQLite has no server')
  if (engine === 'postgres') {
    const idle = { idle_in_transaction_session_timeout: `${idleMs}` }
    const settings = {
      max_connections: '150',
      ...(idleMs === undefined ? {} : idle),
      ...(deadlockMs === undefined ? {} : { deadlock_timeout: `${deadlockMs}ms` }),
    }
    const server = await startPostgres({ settings })
    return {
      idleMs: idleMs ?? 0,
      createDatabase: (prefix) => server.createDatabase(prefix),
      [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
    }
  }
  const seconds = Math.ceil((idleMs ?? 0) / 1_000)
  const setting = engine === 'mariadb' ? 'idle-transaction-timeout' : 'wait-timeout'
  const server = await startInnodb(
    newestServer(engine),
    idleMs === undefined ? {} : { [setting]: String(seconds) },
  )
  return {
    idleMs: seconds * 1_000,
    createDatabase: (prefix) => server.createDatabase(prefix),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  }
}

/** Whether a database is a MariaDB or MySQL. */
export function isInnodb(url: string): boolean {
  return url.startsWith('mysql:')
}
