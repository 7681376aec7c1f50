import { chown, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { freePort } from './free-port.ts'
import { type Guard, openGuard } from './guard.ts'
import { pgbouncerBinary } from './server-binaries.ts'
import { serviceAccount } from './service-account.ts'
import type { PostgresServer } from './start-postgres.ts'
import { untilAnswering } from './until-answering.ts'

export interface StartPgBouncerOptions {
  /** @defaultValue 'transaction' */
  readonly poolMode?: 'transaction' | 'session' | 'statement'
  /** Server connections per database and user. @defaultValue 20 */
  readonly poolSize?: number
}

/** A PgBouncer in front of one server; any database of that server can be reached through it. */
export interface PgBouncer extends AsyncDisposable {
  readonly host: string
  readonly port: number
  readonly pid: number
  /** PgBouncer's own console: `SHOW POOLS`, `SHOW SERVERS`, `PAUSE`, … */
  readonly adminUrl: string
  url(database?: string): string
  stop(): Promise<void>
}

const host = '127.0.0.1'

export async function startPgBouncer(
  server: Pick<PostgresServer, 'host' | 'port' | 'user'>,
  { poolMode = 'transaction', poolSize = 20 }: StartPgBouncerOptions = {},
): Promise<PgBouncer> {
  const file = pgbouncerBinary()
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
      const config = await write(
        'pgbouncer.ini',
        [
          '[databases]',
          `* = host=${server.host} port=${server.port}`,
          '[pgbouncer]',
          `listen_addr = ${host}`,
          `listen_port = ${port}`,
          'unix_socket_dir =',
          'auth_type = trust',
          `auth_file = ${users}`,
          `admin_users = ${server.user}`,
          `pool_mode = ${poolMode}`,
          `default_pool_size = ${poolSize}`,
          'max_client_conn = 1000',
          'ignore_startup_parameters = extra_float_digits',
          '',
        ].join('\n'),
      )
      const pid = await guard.serve({ file, args: [config] })
      const url = (database = 'postgres'): string =>
        `postgres://${server.user}@${host}:${port}/${encodeURIComponent(database)}`
      const adminUrl = url('pgbouncer')
      const log = await untilAnswering(guard, adminUrl, async (client) => {
        const { rows } = await client.query<{ key: string; value: string }>('SHOW CONFIG')
        return rows.some((row) => row.key === 'conffile' && row.value === config)
      })
      if (log === undefined) return describePgBouncer({ port, pid, adminUrl, url, guard })
      // Someone took the port between our look and PgBouncer's bind.
      if (attempt < 5 && /address already in use/i.test(log)) continue
      throw new Error(`PgBouncer did not start:\n${log}`)
    }
  } catch (error) {
    await guard.stop('SIGTERM')
    throw error
  }
}

function describePgBouncer({
  guard,
  ...facts
}: Pick<PgBouncer, 'port' | 'pid' | 'adminUrl' | 'url'> & { guard: Guard }): PgBouncer {
  // SIGINT would wait for the clients to leave.
  const stop = async (): Promise<void> => await guard.stop('SIGTERM')
  return { host, ...facts, stop, [Symbol.asyncDispose]: stop }
}
