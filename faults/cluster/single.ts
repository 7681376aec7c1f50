import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { sendSignal, startPgBouncer, startPostgres } from '@holdfast/testkit'
import { openCuttablePort } from './cuttable-port.ts'
import { openDatabases } from './databases.ts'
import { doorsAnswer, doorsTo } from './doors.ts'
import { keepRunning, oneAtATime } from './keep-running.ts'
import { lastLines } from './last-lines.ts'
import type { OwnCluster } from './parts.ts'
import { poolerSettings, serverSettings } from './settings.ts'

/** One server with PgBouncer before it, and ports that can be cut before both and between them. */
export interface SingleCluster extends OwnCluster {
  readonly tier: 'single'
  /** A file that takes away the room on the server's own disk; `undefined` if it has none of its own. */
  readonly ballast: string | undefined
}

/** Enough for the databases of one episode and their WAL, and little enough to fill up at once. */
const diskMb = 256

export async function startSingle(): Promise<SingleCluster> {
  await using stack = new AsyncDisposableStack()
  const primary = stack.use(
    await startPostgres({
      memoryMb: diskMb,
      settings: { ...serverSettings, wal_keep_size: '0', max_wal_size: '96MB' },
    }),
  )
  const between = stack.use(await openCuttablePort('between', primary))
  const pooler = stack.use(
    await startPgBouncer(
      { host: primary.host, port: between.port, user: primary.user },
      { poolSize: 12, settings: poolerSettings },
    ),
  )
  const direct = stack.use(await openCuttablePort('direct', primary))
  const pooled = stack.use(await openCuttablePort('pooled', pooler))
  const ports = [direct, pooled, between]
  const ballast = primary.inMemory ? join(primary.dataDir, 'ballast') : undefined
  const databases = openDatabases(() => primary.url())
  const urls = {
    direct: primary.url().replace(`:${primary.port}/`, `:${direct.port}/`),
    pooled: primary.url().replace(`:${primary.port}/`, `:${pooled.port}/`),
  }
  const alone = oneAtATime()
  const mend = async (): Promise<void> =>
    await alone(async () => {
      await keepRunning('PostgreSQL', primary, primary.url(), 'SELECT 1')
      await keepRunning('PgBouncer', pooler, pooler.adminUrl, 'SHOW VERSION')
    })
  const owned = stack.move()
  return {
    tier: 'single',
    primary,
    pooler,
    ports,
    ballast,
    ownSlots: [],
    mend,
    async open(prepare) {
      const database = await databases.make(prepare)
      return { database, doors: doorsTo(urls, database) }
    },
    adminUrl: (database) => primary.url(database),
    drop: async (database) => await databases.drop(database),
    async heal() {
      for (const port of ports) port.restore()
      for (const pid of [...primary.processes(), pooler.pid]) sendSignal(pid, 'SIGCONT')
      if (ballast !== undefined) await rm(ballast, { force: true })
      await mend()
      await doorsAnswer(urls)
    },
    logs: async () => await lastLines({ postgres: primary.logFile, pgbouncer: pooler.logFile }),
    [Symbol.asyncDispose]: async () => await owned.disposeAsync(),
  }
}
