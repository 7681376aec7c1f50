import {
  type PostgresServer,
  sendSignal,
  startPgBouncer,
  startPostgres,
  waitUntil,
} from '@holdfast/testkit'
import { rowsOf } from './ask.ts'
import { openCuttablePort, type CuttablePort } from './cuttable-port.ts'
import { openDatabases } from './databases.ts'
import { doorsAnswer, doorsTo } from './doors.ts'
import { keepRunning, oneAtATime } from './keep-running.ts'
import { lastLines } from './last-lines.ts'
import type { OwnCluster } from './parts.ts'
import { promoted } from './promoted.ts'
import { poolerSettings, serverSettings } from './settings.ts'

/** A primary, a standby that every commit waits for, and PgBouncer in front of whoever is the primary. */
export interface PairCluster extends OwnCluster {
  readonly tier: 'pair'
  readonly standby: PostgresServer
  /** Between primary and standby. */
  readonly replication: CuttablePort
  /** The primary is killed, and recovers; what it had not sent to the standby by then, it has not sent. */
  crash(): Promise<void>
  /**
   * The primary is killed and never comes back: its data is deleted. The standby is promoted, pooler and
   * port lead to it, and a new standby is made. Until that one streams, no commit is confirmed.
   */
  failOver(say: (note: string) => void): Promise<void>
}

export interface PairOptions {
  /** The control: commits do not wait for the standby. @defaultValue true */
  readonly synchronous?: boolean
}

/** Two databases of an episode and the WAL that a new standby starts from. */
const diskMb = 900
const rebuildMs = 60_000

export async function startPair({ synchronous = true }: PairOptions = {}): Promise<PairCluster> {
  await using stack = new AsyncDisposableStack()
  let primary = await startPostgres({
    memoryMb: diskMb,
    settings: {
      ...serverSettings,
      // Also the promoted one has it from its first moment, so it confirms nothing while it is alone.
      synchronous_standby_names: synchronous ? 'ANY 1 (*)' : '',
      wal_receiver_status_interval: '1s',
      wal_retrieve_retry_interval: '100ms',
      max_wal_size: '128MB',
      wal_keep_size: '256MB',
    },
  })
  stack.defer(async () => await primary.stop('immediate'))
  const replication = stack.use(await openCuttablePort('replication', primary))
  let standby = await primary.standby({ throughPort: replication.port })
  stack.defer(async () => await standby.stop('immediate'))
  const pooler = stack.use(
    await startPgBouncer(primary, { poolSize: 12, settings: poolerSettings }),
  )
  const direct = stack.use(await openCuttablePort('direct', primary))
  const pooled = stack.use(await openCuttablePort('pooled', pooler))
  const ports = [direct, pooled]
  const databases = openDatabases(() => primary.url())
  const through = ({ port }: CuttablePort): string =>
    primary.url().replace(`:${primary.port}/`, `:${port}/`)
  const urls = { direct: through(direct), pooled: through(pooled) }
  const alone = oneAtATime()

  const standbyCounts = async (): Promise<void> => {
    await waitUntil(
      'the standby streams, and commits wait for it',
      async () => {
        const rows = await rowsOf<{ state: string }>(
          primary.url(),
          `SELECT sync_state AS state FROM pg_stat_replication WHERE state = 'streaming'`,
        ).catch(() => [])
        const wanted = synchronous ? 'quorum' : 'async'
        return rows.some(({ state }) => state === wanted) ? true : undefined
      },
      { limitMs: rebuildMs, everyMs: 20 },
    )
  }
  const renewStandby = async (): Promise<void> => {
    replication.leadTo(primary)
    const deadline = performance.now() + rebuildMs
    for (;;) {
      try {
        await keepRunning('the new primary', primary, primary.url(), 'SELECT 1')
        standby = await primary.standby({ throughPort: replication.port })
        return
      } catch (error) {
        if (performance.now() > deadline) throw error
      }
    }
  }
  const mend = async (): Promise<void> =>
    await alone(async () => {
      await keepRunning('the primary', primary, primary.url(), 'SELECT 1')
      await keepRunning('the standby', standby, standby.url(), 'SELECT 1')
      await keepRunning('PgBouncer', pooler, pooler.adminUrl, 'SHOW VERSION')
    })
  const owned = stack.move()
  return {
    tier: 'pair',
    get primary() {
      return primary
    },
    get standby() {
      return standby
    },
    replication,
    pooler,
    ports,
    ownSlots: [],
    mend,
    async open(prepare) {
      const database = await databases.make(prepare)
      return { database, doors: doorsTo(urls, database) }
    },
    adminUrl: (database) => primary.url(database),
    drop: async (database) => await databases.drop(database),
    async crash() {
      await alone(async () => {
        await primary.kill()
        replication.cutAll()
        await keepRunning('the primary', primary, primary.url(), 'SELECT 1')
      })
    },
    async failOver(say) {
      await alone(async () => {
        const lost = primary
        const began = performance.now()
        const after = (): string => `${Math.round(performance.now() - began)} ms`
        await lost.kill()
        // What was not received by now never will be.
        replication.cutAll()
        replication.restore()
        await promoted(standby)
        primary = standby
        direct.leadTo(primary)
        await keepRunning('PgBouncer', pooler, pooler.adminUrl, 'SHOW VERSION')
        await pooler.repoint(primary)
        say(`promoted after ${after()}`)
        const gone = lost.stop('immediate')
        await renewStandby()
        await standbyCounts()
        await gone
        say(`a new standby after ${after()}`)
      })
    },
    async heal() {
      for (const port of [...ports, replication]) port.restore()
      const pids = [...primary.processes(), ...standby.processes(), pooler.pid]
      for (const pid of pids) sendSignal(pid, 'SIGCONT')
      await mend()
      await standbyCounts()
      await doorsAnswer(urls)
    },
    logs: async () =>
      await lastLines({
        primary: primary.logFile,
        standby: standby.logFile,
        pgbouncer: pooler.logFile,
      }),
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  }
}
