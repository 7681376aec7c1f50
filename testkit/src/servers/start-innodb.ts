import { randomBytes } from 'node:crypto'
import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type Connection, createConnection } from 'mysql2/promise'
import { killAll, untilGone } from './end-of-server.ts'
import { freePort } from './free-port.ts'
import { type Guard, openGuard } from './guard.ts'
import {
  innodbBinaries,
  type InnodbBinaries,
  type InnodbServerName,
  mariadbTables,
} from './innodb-binaries.ts'
import { sendSignal } from '../send-signal.ts'
import { serviceAccount } from './service-account.ts'
import { waitUntil } from '../wait-until.ts'

/** A MariaDB or MySQL server that belongs to this process and ends with it. */
export interface InnodbServer extends AsyncDisposable {
  readonly name: InnodbServerName
  readonly isMariadb: boolean
  readonly host: string
  readonly port: number
  readonly user: string
  readonly pid: number
  readonly dataDir: string
  readonly logFile: string
  /** Where to connect. @defaultValue no database */
  url(database?: string): string
  /** A new, empty database; gives its URL. */
  createDatabase(prefix?: string): Promise<string>
  /** SIGKILL; resolves when it is gone. The data stays. */
  kill(): Promise<void>
  /** Stops it in an orderly way; resolves when it has ended. The data stays. */
  shutDown(): Promise<void>
  /** Starts it again on its data and its port; resolves when it answers. */
  startAgain(): Promise<void>
  /** Stops the server and deletes its data. */
  stop(): Promise<void>
}

const host = '127.0.0.1'
const user = 'root'

/** Tests lose nothing when the machine loses power. */
const defaultSettings: Readonly<Record<string, string>> = {
  'innodb-flush-log-at-trx-commit': '2',
  'sync-binlog': '0',
  'max-connections': '500',
  'innodb-buffer-pool-size': '64M',
}

/**
 * Starts a MariaDB or MySQL server with its own data directory and port. Whoever is on this machine may log in as root.
 * It keeps nothing, and is gone when it is stopped or when this process ends, however it ends.
 *
 * @example
 * await using server = await startInnodb('mariadb-11')
 * const pool = createPool({ uri: await server.createDatabase() })
 */
export async function startInnodb(
  name: InnodbServerName,
  settings: Readonly<Record<string, string>> = {},
): Promise<InnodbServer> {
  const binaries = innodbBinaries(name)
  if (binaries === undefined)
    throw new Error(`${name} is not installed here. Run: npm run servers:engines`)
  const account = await serviceAccount()
  const guard = await openGuard(name, account)
  const write = async (file: string, text: string): Promise<string> => {
    const path = join(guard.folder, file)
    await writeFile(path, text, { mode: 0o600 })
    if (account !== undefined) await chown(path, account.uid, account.gid)
    return path
  }
  try {
    const dataDir = join(guard.folder, 'data')
    await makeData(guard, binaries, dataDir, write)
    const opening = await write('users.sql', openToAll)
    for (let attempt = 1; ; attempt += 1) {
      const port = await freePort(host)
      const given = { ...defaultSettings, ...settings, port: String(port) }
      const serve = async (): Promise<string | undefined> =>
        await serveOn(guard, binaries, { dataDir, opening, settings: given })
      const log = await serve()
      if (log === undefined) return describeServer({ guard, binaries, dataDir, port, serve })
      // Someone took the port between our look and the server's bind.
      if (attempt < 5 && /bind on TCP\/IP port|address already in use/i.test(log)) continue
      throw new Error(`${name} did not start:\n${log}`)
    }
  } catch (error) {
    await guard.stop('SIGKILL')
    throw error
  }
}

const openToAll = `CREATE USER IF NOT EXISTS '${user}'@'%';
GRANT ALL PRIVILEGES ON *.* TO '${user}'@'%' WITH GRANT OPTION;
`

async function makeData(
  guard: Guard,
  binaries: InnodbBinaries,
  dataDir: string,
  write: (file: string, text: string) => Promise<string>,
): Promise<void> {
  const { file, lead, share, isMariadb } = binaries
  const args = [...lead, '--no-defaults', `--datadir=${dataDir}`, `--lc-messages-dir=${share}`]
  if (!isMariadb) {
    await guard.run({ file, args: [...args, '--initialize-insecure'] })
    return
  }
  const tables = await write('tables.sql', mariadbTables(binaries))
  // It reads them from its input, and makes no folder for them.
  const script = `mkdir "$1" && tables=$2 && shift 2 && exec "$@" <"$tables"`
  await guard.run({
    file: '/bin/sh',
    args: ['-c', script, 'sh', dataDir, tables, file, ...args, '--bootstrap'],
  })
}

/** Resolves with nothing when the server answers, with its log if it ended instead. */
async function serveOn(
  guard: Guard,
  { file, lead, share, isMariadb }: InnodbBinaries,
  facts: { dataDir: string; opening: string; settings: Readonly<Record<string, string>> },
): Promise<string | undefined> {
  const { dataDir, opening, settings } = facts
  const given = {
    ...settings,
    datadir: dataDir,
    'lc-messages-dir': share,
    'bind-address': host,
    socket: join(guard.folder, 'sock'),
    'pid-file': join(guard.folder, 'pid'),
    'init-file': opening,
    ...(isMariadb ? {} : { 'secure-file-priv': 'NULL', mysqlx: 'OFF' }),
  }
  const args = Object.entries(given).map(([key, value]) => `--${key}=${value}`)
  await guard.serve({ file, args: [...lead, '--no-defaults', ...args, '--skip-name-resolve'] })
  const look = async (): Promise<{ log: string | undefined } | undefined> => {
    const log = guard.ended()
    if (log !== undefined) return { log }
    try {
      return (await isOurs(Number(settings['port']), dataDir)) ? { log: undefined } : undefined
    } catch {
      return undefined // it does not listen yet, or is still starting up
    }
  }
  return (await waitUntil('the new server answers', look, { limitMs: 60_000, everyMs: 20 })).log
}

/** A stranger may have taken the port in the meantime. */
async function isOurs(port: number, dataDir: string): Promise<boolean> {
  return await withConnection(urlTo(port), async (connection) => {
    const [rows] = await connection.query('SELECT @@datadir AS folder')
    return (rows as { folder: string }[])[0]?.folder === `${dataDir}/`
  })
}

async function withConnection<T>(
  uri: string,
  work: (connection: Connection) => Promise<T>,
): Promise<T> {
  const connection = await createConnection({ uri, connectTimeout: 2_000 })
  try {
    return await work(connection)
  } finally {
    connection.destroy()
  }
}

function describeServer(facts: {
  guard: Guard
  binaries: InnodbBinaries
  dataDir: string
  port: number
  serve: () => Promise<string | undefined>
}): InnodbServer {
  const { guard, binaries, dataDir, port, serve } = facts
  const url = (database = ''): string => urlTo(port, database)
  const stop = async (): Promise<void> => {
    await guard.stop('SIGTERM')
  }
  return {
    name: binaries.name,
    isMariadb: binaries.isMariadb,
    host,
    port,
    user,
    get pid() {
      return guard.pid()
    },
    dataDir,
    logFile: guard.logFile,
    url,
    async createDatabase(prefix = 'test') {
      const name = `${prefix}_${randomBytes(5).toString('hex')}`
      await withConnection(url(), async (connection) => {
        await connection.query(`CREATE DATABASE \`${name}\``)
      })
      return url(name)
    },
    kill: async () => await killAll(guard),
    async shutDown() {
      sendSignal(guard.pid(), 'SIGTERM')
      await untilGone(guard)
    },
    async startAgain() {
      await untilGone(guard)
      const log = await serve()
      if (log !== undefined) throw new Error(`${binaries.name} did not start again:\n${log}`)
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function urlTo(port: number, database = ''): string {
  return `mysql://${user}@${host}:${port}/${encodeURIComponent(database)}`
}
