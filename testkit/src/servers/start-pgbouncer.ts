import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { withClient } from '../create-database.ts'
import { killAll, untilGone } from './end-of-server.ts'
import { freePort } from './free-port.ts'
import { type Guard, openGuard } from './guard.ts'
import { pgbouncerProgram } from './server-binaries.ts'
import { serviceAccount } from './service-account.ts'
import type { PostgresServer } from './start-postgres.ts'
import { untilAnswering } from './until-answering.ts'

export interface StartPgBouncerOptions {
  /** @defaultValue 'transaction' */
  readonly poolMode?: 'transaction' | 'session' | 'statement'
  /** Server connections per database and user. @defaultValue 20 */
  readonly poolSize?: number
  /** Client connections at most; each takes a file descriptor. @defaultValue 1000 */
  readonly maxClients?: number
  /** Further names of databases and how to reach them: `{ slow: 'dbname=shop pool_size=1' }`. */
  readonly aliases?: Readonly<Record<string, string>>
  /** Further settings of its own: `{ server_login_retry: '1' }`. */
  readonly settings?: Readonly<Record<string, string>>
  /** Which one: `newest` keeps track of prepared statements. @defaultValue that of the system */
  readonly version?: 'newest'
}

type Upstream = Pick<PostgresServer, 'host' | 'port' | 'user'>

/** A PgBouncer in front of one server; any database of that server can be reached through it. */
export interface PgBouncer extends AsyncDisposable {
  readonly host: string
  readonly port: number
  /** Another one each time it is started. */
  readonly pid: number
  readonly logFile: string
  /** Whether it has not ended, as far as is known here; it may stand still. */
  readonly running: boolean
  /** PgBouncer's own console: `SHOW POOLS`, `SHOW SERVERS`, `PAUSE`, … */
  readonly adminUrl: string
  url(database?: string): string
  /** SIGKILL; resolves when it is gone. */
  kill(): Promise<void>
  /** Starts it again on its port; resolves when it answers. */
  startAgain(): Promise<void>
  /** From now on in front of another server; connections to the old one end with their transactions. */
  repoint(server: Upstream): Promise<void>
  stop(): Promise<void>
}

const host = '127.0.0.1'

export async function startPgBouncer(
  server: Upstream,
  options: StartPgBouncerOptions = {},
): Promise<PgBouncer> {
  const program = pgbouncerProgram(options.version)
  if (program === undefined) throw new Error('no newest PgBouncer: npm run servers:engines')
  const { file, lead } = program
  const account = await serviceAccount()
  const guard = await openGuard('pgbouncer', account)
  const write = async (name: string, text: string): Promise<string> => {
    const path = join(guard.folder, name)
    await writeFile(path, text, { mode: 0o600 })
    if (account !== undefined) await chown(path, account.uid, account.gid)
    return path
  }
  try {
    const users = await write('users.txt', `"${server.user}" ""\n`)
    for (let attempt = 1; ; attempt += 1) {
      const port = await freePort(host)
      const configure = async (upstream: Upstream): Promise<string> =>
        await write('pgbouncer.ini', configuration({ upstream, port, users, options }))
      const config = await configure(server)
      const adminUrl = urlTo(server.user, port, 'pgbouncer')
      const serve = async (): Promise<string | undefined> => {
        await guard.serve({ file, args: [...lead, config] })
        return await untilAnswering(guard, adminUrl, async (client) => {
          const { rows } = await client.query<{ key: string; value: string }>('SHOW CONFIG')
          return rows.some((row) => row.key === 'conffile' && row.value === config)
        })
      }
      const log = await serve()
      if (log === undefined) {
        return describePgBouncer({ user: server.user, port, adminUrl, guard, serve, configure })
      }
      // Someone took the port between our look and PgBouncer's bind.
      if (attempt < 5 && /address already in use/i.test(log)) continue
      throw new Error(`PgBouncer did not start:\n${log}`)
    }
  } catch (error) {
    await guard.stop('SIGTERM')
    throw error
  }
}

function configuration(facts: {
  upstream: Upstream
  port: number
  users: string
  options: StartPgBouncerOptions
}): string {
  const { upstream, port, users, options } = facts
  const { poolMode = 'transaction', poolSize = 20, maxClients = 1000, aliases = {} } = options
  const place = `host=${upstream.host} port=${upstream.port}`
  const settings = {
    listen_addr: host,
    listen_port: String(port),
    unix_socket_dir: '',
    auth_type: 'trust',
    auth_file: users,
    admin_users: upstream.user,
    pool_mode: poolMode,
    default_pool_size: String(poolSize),
    max_client_conn: String(maxClients),
    ignore_startup_parameters: 'extra_float_digits',
    ...options.settings,
  }
  return [
    '[databases]',
    `* = ${place}`,
    ...Object.entries(aliases).map(([name, rest]) => `${name} = ${place} ${rest}`),
    '[pgbouncer]',
    ...Object.entries(settings).map(([name, value]) => `${name} = ${value}`),
    '',
  ].join('\n')
}

function describePgBouncer(facts: {
  user: string
  port: number
  adminUrl: string
  guard: Guard
  serve: () => Promise<string | undefined>
  configure: (upstream: Upstream) => Promise<string>
}): PgBouncer {
  const { user, port, adminUrl, guard, serve, configure } = facts
  // SIGINT would wait for the clients to leave.
  const stop = async (): Promise<void> => await guard.stop('SIGTERM')
  return {
    host,
    port,
    get pid() {
      return guard.pid()
    },
    logFile: guard.logFile,
    get running() {
      return guard.ended() === undefined
    },
    adminUrl,
    url: (database = 'postgres') => urlTo(user, port, database),
    kill: async () => await killAll(guard),
    async startAgain() {
      await untilGone(guard)
      const log = await serve()
      if (log !== undefined) throw new Error(`PgBouncer did not start again:\n${log}`)
    },
    async repoint(server) {
      await configure(server)
      await withClient(adminUrl, async (console) => {
        await console.query('RELOAD')
        // Also those that stand idle; a killed server has not always said goodbye to them.
        await console.query('RECONNECT')
      })
    },
    stop,
    [Symbol.asyncDispose]: stop,
  }
}

function urlTo(user: string, port: number, database: string): string {
  return `postgres://${user}@${host}:${port}/${encodeURIComponent(database)}`
}
