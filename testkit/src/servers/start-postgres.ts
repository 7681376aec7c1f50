import { basename, join } from 'node:path'
import { backUp } from './back-up.ts'
import { createDatabase, withClient } from '../create-database.ts'
import { killAll, untilGone } from './end-of-server.ts'
import { freePort } from './free-port.ts'
import { type Guard, openGuard } from './guard.ts'
import { processesIn } from './processes-in.ts'
import { defaultVersion, type PostgresVersion, postgresBinaries } from './server-binaries.ts'
import { sendSignal } from '../send-signal.ts'
import { type ServiceAccount, serviceAccount } from './service-account.ts'
import { untilAnswering } from './until-answering.ts'
import { waitUntil } from '../wait-until.ts'

export interface StartPostgresOptions {
  /** Major version. @defaultValue `HOLDFAST_PG`, else 15 */
  readonly version?: PostgresVersion
  /**
   * Server settings, on top of ours: `{ fsync: 'on', wal_level: 'logical' }`. They are given on the command
   * line, which ALTER SYSTEM cannot change; `undefined` leaves one of ours out.
   */
  readonly settings?: Readonly<Record<string, string | undefined>>
  /**
   * Data in memory, on a file system of its own with so much room. Only root can have it; without, the
   * data is where it is otherwise, and `inMemory` says so.
   */
  readonly memoryMb?: number | undefined
}

/** A PostgreSQL server that belongs to this process and ends with it. */
export interface PostgresServer extends AsyncDisposable {
  readonly version: PostgresVersion
  readonly host: string
  readonly port: number
  readonly user: string
  /** Of the postmaster; another one each time it is started. */
  readonly pid: number
  readonly dataDir: string
  readonly logFile: string
  readonly inMemory: boolean
  /** Whether it has not ended, as far as is known here; it may stand still, or not answer yet. */
  readonly running: boolean
  /** All its processes, the postmaster's included. */
  processes(): number[]
  /** Where to connect. @defaultValue database `postgres` */
  url(database?: string): string
  /** A new, empty database; gives its URL. */
  createDatabase(prefix?: string): Promise<string>
  /** A hot standby that streams from this server, if asked through another port; resolves once it does. */
  standby(options?: { readonly throughPort?: number }): Promise<PostgresServer>
  /** Makes a standby a primary; resolves once it takes writes. */
  promote(): Promise<void>
  /** SIGKILL to all its processes at once; resolves when they are gone. The data stays. */
  kill(): Promise<void>
  /** Stops it in an orderly way, or not; resolves when it has ended. The data stays. */
  shutDown(mode: 'fast' | 'immediate'): Promise<void>
  /** Starts it again on its data and its port, whatever is left of it; resolves when it answers. */
  startAgain(): Promise<void>
  /** Stops the server and deletes its data. @defaultValue 'fast' */
  stop(mode?: 'fast' | 'immediate'): Promise<void>
}

const host = '127.0.0.1'
const user = 'postgres'
const stopSignals = { fast: 'SIGINT', immediate: 'SIGQUIT' } as const

const defaultSettings: Readonly<Record<string, string>> = {
  // Tests lose nothing when the machine loses power; benchmarks set this to on.
  fsync: 'off',
  max_connections: '500',
  wal_level: 'replica',
  // A standby starts from a copy and needs the WAL since then, which has no slot to keep it.
  wal_keep_size: '256MB',
  lc_messages: 'C',
}

/** How a data directory comes to be, before the server starts on it. */
type Prepare = (place: {
  guard: Guard
  dataDir: string
  binaries: string
  account: ServiceAccount | undefined
}) => Promise<void>

/**
 * Starts a PostgreSQL server with its own data directory, port and sockets. It trusts every local
 * connection, keeps nothing, and is gone when it is stopped or when this process ends, however it
 * ends.
 *
 * @example
 * await using server = await startPostgres({ version: 18 })
 * const pool = new Pool({ connectionString: await server.createDatabase() })
 */
export async function startPostgres(options: StartPostgresOptions = {}): Promise<PostgresServer> {
  return await start(
    options.version ?? defaultVersion(),
    Object.fromEntries(
      Object.entries({ ...defaultSettings, ...options.settings }).filter(
        (entry): entry is [string, string] => entry[1] !== undefined,
      ),
    ),
    async ({ guard, dataDir, binaries }) => {
      await guard.run({
        file: join(binaries, 'initdb'),
        args: [
          `--pgdata=${dataDir}`,
          `--username=${user}`,
          '--auth=trust',
          '--encoding=UTF8',
          '--locale=C',
          '--no-sync',
        ],
      })
    },
    options.memoryMb,
  )
}

async function start(
  version: PostgresVersion,
  settings: Readonly<Record<string, string>>,
  prepare: Prepare,
  memoryMb: number | undefined,
): Promise<PostgresServer> {
  const binaries = postgresBinaries(version)
  const account = await serviceAccount()
  const guard = await openGuard(`pg${version}`, account, memoryMb)
  const dataDir = join(guard.folder, 'data')
  try {
    await prepare({ guard, dataDir, binaries, account })
    const port = await serveSomewhere(guard, binaries, dataDir, settings)
    return describeServer({ version, settings, memoryMb, guard, binaries, dataDir, port })
  } catch (error) {
    await guard.stop('SIGQUIT')
    throw error
  }
}

/** Starts the server on a free port, and gives that. */
async function serveSomewhere(
  guard: Guard,
  binaries: string,
  dataDir: string,
  settings: Readonly<Record<string, string>>,
): Promise<number> {
  for (let attempt = 1; ; attempt += 1) {
    const port = await freePort(host)
    const log = await serve(guard, binaries, dataDir, { ...settings, port: String(port) })
    if (log === undefined) return port
    // Someone took the port between our look and the server's bind.
    if (attempt < 5 && log.includes('could not bind')) continue
    throw new Error(`PostgreSQL did not start:\n${log}`)
  }
}

/** Resolves with nothing when the server answers, with its log if it ended instead. */
async function serve(
  guard: Guard,
  binaries: string,
  dataDir: string,
  settings: Readonly<Record<string, string>>,
): Promise<string | undefined> {
  const given = {
    ...settings,
    listen_addresses: host,
    unix_socket_directories: guard.folder,
    cluster_name: basename(guard.folder),
  }
  await guard.serve({
    file: join(binaries, 'postgres'),
    args: ['-D', dataDir, ...Object.entries(given).flatMap(([k, v]) => ['-c', `${k}=${v}`])],
  })
  return await untilAnswering(
    guard,
    urlTo(Number(settings['port']), 'postgres'),
    async (client) => {
      const { rows } = await client.query<{ data_directory: string }>('SHOW data_directory')
      return rows[0]?.data_directory === dataDir
    },
  )
}

function describeServer(facts: {
  version: PostgresVersion
  settings: Readonly<Record<string, string>>
  memoryMb: number | undefined
  guard: Guard
  binaries: string
  dataDir: string
  port: number
}): PostgresServer {
  const { version, settings, memoryMb, guard, binaries, dataDir, port } = facts
  const url = (database = 'postgres'): string => urlTo(port, database)
  const stop = async (mode: 'fast' | 'immediate' = 'fast'): Promise<void> => {
    await guard.stop(stopSignals[mode])
  }
  return {
    version,
    host,
    port,
    user,
    get pid() {
      return guard.pid()
    },
    dataDir,
    logFile: guard.logFile,
    inMemory: guard.inMemory,
    get running() {
      return guard.ended() === undefined
    },
    processes: () => processesIn(guard.folder),
    url,
    stop,
    createDatabase: async (prefix) => await createDatabase(url(), prefix),
    async standby({ throughPort = port } = {}) {
      const conninfo = `host=${host} port=${throughPort} user=${user}`
      const upstream = { ...settings, primary_conninfo: conninfo }
      const prepare: Prepare = async (place) => {
        await backUp({ url: url(), from: dataDir, to: place.dataDir, account: place.account })
      }
      const standby = await start(version, upstream, prepare, memoryMb)
      await untilStreaming(url(), standby)
      return standby
    },
    async promote() {
      await withClient(url(), async (client) => await client.query('SELECT pg_promote(true)'))
    },
    kill: async () => await killAll(guard),
    async shutDown(mode) {
      sendSignal(guard.pid(), stopSignals[mode])
      await untilGone(guard)
    },
    async startAgain() {
      await untilGone(guard)
      const log = await serve(guard, binaries, dataDir, { ...settings, port: String(port) })
      if (log !== undefined) throw new Error(`PostgreSQL did not start again:\n${log}`)
    },
    [Symbol.asyncDispose]: async () => {
      await stop()
    },
  }
}

async function untilStreaming(primaryUrl: string, standby: PostgresServer): Promise<void> {
  await withClient(primaryUrl, async (client) => {
    // A standby presents itself to its primary by its cluster_name.
    const { rows } = await withClient(standby.url(), async (other) =>
      other.query<{ name: string }>(`SELECT current_setting('cluster_name') AS name`),
    )
    await waitUntil('the standby streams', async () => {
      const streaming = await client.query(
        `SELECT 1 FROM pg_stat_replication WHERE application_name = $1 AND state = 'streaming'`,
        [rows[0]?.name],
      )
      return streaming.rowCount === 1 ? true : undefined
    })
  })
}

function urlTo(port: number, database: string): string {
  return `postgres://${user}@${host}:${port}/${encodeURIComponent(database)}`
}
