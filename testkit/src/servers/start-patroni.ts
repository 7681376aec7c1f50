import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { killAll } from './end-of-server.ts'
import { freePort } from './free-port.ts'
import { type Guard, openGuard } from './guard.ts'
import { processesIn } from './processes-in.ts'
import { sendSignal } from '../send-signal.ts'
import { defaultVersion, patroniBinary, postgresBinaries } from './server-binaries.ts'
import { serviceAccount } from './service-account.ts'
import type { Etcd } from './start-etcd.ts'
import { waitUntil } from '../wait-until.ts'

export interface StartPatroniOptions {
  readonly etcd: Pick<Etcd, 'host' | 'port'>
  /** Of this member; alike for no two of a cluster. */
  readonly name: string
  /**
   * Whether nothing is committed without the standby. Counts for the first member, which makes the cluster.
   * @defaultValue true
   */
  readonly synchronous?: boolean
  /** Settings of PostgreSQL. */
  readonly settings?: Readonly<Record<string, string>>
}

/** A Patroni with the PostgreSQL server that it looks after. */
export interface PatroniMember extends AsyncDisposable {
  readonly name: string
  readonly host: string
  /** Of PostgreSQL. */
  readonly port: number
  readonly user: string
  readonly logFile: string
  /** Whether Patroni has not ended, as far as is known here. */
  readonly running: boolean
  /** Of PostgreSQL. */
  url(database?: string): string
  /** All processes, Patroni's and PostgreSQL's. */
  processes(): number[]
  /** Whether it says that it is the primary and has the key to it. */
  isPrimary(): Promise<boolean>
  /** Whether it says that it is the standby that may be promoted: the synchronous one, if that is asked for. */
  isNext(): Promise<boolean>
  /** Asks for an orderly change; resolves when Patroni says that it is done. */
  switchTo(candidate: PatroniMember): Promise<void>
  /** SIGKILL: of the PostgreSQL server alone, of Patroni alone, or of both. */
  kill(what: 'postgres' | 'patroni' | 'both'): Promise<void>
  /** Starts Patroni again, which does the rest. */
  startAgain(): Promise<void>
}

const host = '127.0.0.1'
const user = 'postgres'

/** Short ones, within what Patroni allows: `loop_wait + 2 * retry_timeout` must fit into `ttl`. */
const pace = { ttl: 20, loop_wait: 1, retry_timeout: 3 }

/**
 * Starts one member of a Patroni cluster. The first one makes the database, the second one copies it and becomes
 * the synchronous standby without which nothing is committed.
 */
export async function startPatroni(options: StartPatroniOptions): Promise<PatroniMember> {
  const file = patroniBinary()
  const version = defaultVersion()
  const guard = await openGuard(`patroni-${options.name}`, await serviceAccount())
  try {
    const [port, restPort] = [await freePort(host), await freePort(host)]
    const config = join(guard.folder, 'patroni.json')
    const text = configuration(options, { folder: guard.folder, port, restPort, version })
    // JSON is YAML. The folder is closed to others, so the file need not be.
    await writeFile(config, JSON.stringify(text, undefined, 2))
    const standby = (options.synchronous ?? true) ? 'synchronous' : 'replica'
    const serve = async (): Promise<void> => await guard.serve({ file, args: [config] })
    await serve()
    const member = describeMember({ name: options.name, port, restPort, guard, standby, serve })
    await waitUntil(
      `${options.name} is the primary or its standby`,
      async () => {
        const log = guard.ended()
        if (log !== undefined) throw new Error(`Patroni did not start:\n${log}`)
        // A standby that copies its data is not healthy yet.
        const up = (await member.isPrimary()) || (await member.isNext())
        return up ? true : undefined
      },
      { limitMs: 90_000, everyMs: 100 },
    )
    return member
  } catch (error) {
    await guard.stop('SIGTERM')
    throw error
  }
}

function configuration(
  { etcd, name, synchronous = true, settings }: StartPatroniOptions,
  place: {
    folder: string
    port: number
    restPort: number
    version: Parameters<typeof postgresBinaries>[0]
  },
): object {
  const { folder, port, restPort, version } = place
  const rest = `${host}:${restPort}`
  const address = `${host}:${port}`
  return {
    scope: 'holdfast',
    name,
    restapi: { listen: rest, connect_address: rest },
    etcd3: { host: `${etcd.host}:${etcd.port}` },
    bootstrap: {
      dcs: {
        ...pace,
        // A server that crashed is replaced and not started again in its place.
        primary_start_timeout: 0,
        synchronous_mode: synchronous,
        synchronous_mode_strict: synchronous,
        postgresql: {
          use_pg_rewind: true,
          use_slots: true,
          parameters: { wal_keep_size: '256MB', max_wal_senders: '10', ...settings },
        },
      },
      initdb: [
        { encoding: 'UTF8' },
        { locale: 'C' },
        { auth: 'trust' },
        'data-checksums',
        'no-sync',
      ],
    },
    postgresql: {
      listen: address,
      connect_address: address,
      data_dir: join(folder, 'data'),
      bin_dir: postgresBinaries(version),
      pgpass: join(folder, 'pgpass'),
      authentication: { superuser: { username: user }, replication: { username: user } },
      pg_hba: [`host all all ${host}/32 trust`, `host replication all ${host}/32 trust`],
      parameters: { unix_socket_directories: folder },
      basebackup: [{ checkpoint: 'fast' }],
      remove_data_directory_on_rewind_failure: true,
      remove_data_directory_on_diverged_timelines: true,
    },
    watchdog: { mode: 'off' },
  }
}

function describeMember(facts: {
  name: string
  port: number
  restPort: number
  guard: Guard
  /** What a standby that may be promoted answers to. */
  standby: 'synchronous' | 'replica'
  serve: () => Promise<void>
}): PatroniMember {
  const { name, port, restPort, guard, standby, serve } = facts
  const data = join(guard.folder, 'data')
  const rest = `http://${host}:${restPort}`
  const ended = async (): Promise<void> => {
    await waitUntil('Patroni has ended', () => (guard.ended() === undefined ? undefined : true))
  }
  return {
    name,
    host,
    port,
    user,
    logFile: guard.logFile,
    get running() {
      return guard.ended() === undefined
    },
    url: (database = 'postgres') =>
      `postgres://${user}@${host}:${port}/${encodeURIComponent(database)}`,
    processes: () => processesIn(guard.folder),
    isPrimary: async () => (await said(`${rest}/primary`))?.status === 200,
    isNext: async () => (await said(`${rest}/${standby}`))?.status === 200,
    async switchTo(candidate) {
      const answer = await fetch(`${rest}/switchover`, {
        method: 'POST',
        body: JSON.stringify({ leader: name, candidate: candidate.name }),
        signal: AbortSignal.timeout(60_000),
      })
      if (!answer.ok) throw new Error(`Patroni did not switch over: ${await answer.text()}`)
    },
    async kill(what) {
      if (what === 'both') return await killAll(guard)
      if (what === 'patroni') {
        sendSignal(guard.pid(), 'SIGKILL')
        await ended()
        return
      }
      // PostgreSQL works in its data directory, Patroni in the folder above.
      const pids = processesIn(data)
      for (const pid of pids) sendSignal(pid, 'SIGKILL')
      await waitUntil('PostgreSQL is gone', () => {
        const left = processesIn(data)
        return pids.some((pid) => left.includes(pid)) ? undefined : true
      })
    },
    async startAgain() {
      await ended()
      await serve()
    },
    // Patroni would take its time to shut PostgreSQL down in order; the data is about to be deleted.
    [Symbol.asyncDispose]: async () => await guard.stop('SIGKILL'),
  }
}

async function said(url: string): Promise<Response | undefined> {
  try {
    return await fetch(url, { signal: AbortSignal.timeout(2_000) })
  } catch {
    return undefined // it does not answer at the moment
  }
}
