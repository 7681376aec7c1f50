import {
  closeForCopies,
  createDatabase,
  type PgBouncer,
  type PostgresServer,
  startPgBouncer,
  startPostgres,
} from '@holdfast/testkit'
import pg from 'pg'
import type { TestProject } from 'vitest/node'
import { fromPg } from '../../src/drivers/pg.ts'
import { migrate } from '../../src/schema/index.ts'
import { isHostile, setAgainst, setTraps } from './hostile-database.ts'

declare module 'vitest' {
  interface ProvidedContext {
    /** Direct to the server, database `postgres`. */
    postgresUrl: string
    /** The same server through PgBouncer in transaction mode. */
    pgbouncerUrl: string
    /** Name of a database with our schema installed, of which copies can be made. */
    installedDatabase: string
    /** Of one without. */
    emptyDatabase: string
    /** Whether the code under test is to connect through PgBouncer in this project. */
    throughPooler: boolean
  }
}

interface SharedServers {
  readonly postgres: PostgresServer
  readonly pgbouncer: PgBouncer
  readonly installed: string
  readonly empty: string
}

interface Share {
  starting: Promise<SharedServers>
  users: number
}

// Vitest loads this file anew for each project, all in one process: only what hangs on globalThis
// is common to them.
const shelf = globalThis as { holdfastShare?: Share | undefined }

async function startServers(): Promise<SharedServers> {
  const postgres = await startPostgres()
  const pgbouncer = await startPgBouncer(postgres)
  const empty = isHostile ? await trapsOnce(postgres.url()) : 'template0'
  return { postgres, pgbouncer, installed: await installOnce(postgres.url(), empty), empty }
}

async function trapsOnce(server: string): Promise<string> {
  const url = await createDatabase(server, 'hostile')
  await setTraps(url)
  return await closeForCopies(url)
}

/** Installing takes longer than copying, and hundreds of tests begin with it. */
async function installOnce(server: string, empty: string): Promise<string> {
  const url = await createDatabase(server, 'installed', empty)
  if (isHostile) await setAgainst(url)
  const pool = new pg.Pool({ connectionString: url, max: 1 })
  await migrate(fromPg(pool))
  await pool.end()
  return await closeForCopies(url)
}

/** Vitest's global setup: the first project of a run starts the servers, the last one stops them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  shelf.holdfastShare ??= { starting: startServers(), users: 0 }
  const share = shelf.holdfastShare
  share.users += 1
  const { postgres, pgbouncer, installed, empty } = await share.starting
  project.provide('postgresUrl', postgres.url())
  project.provide('pgbouncerUrl', pgbouncer.url())
  project.provide('installedDatabase', installed)
  project.provide('emptyDatabase', empty)
  return async () => {
    share.users -= 1
    if (share.users > 0) return
    shelf.holdfastShare = undefined
    await pgbouncer.stop()
    await postgres.stop('immediate')
  }
}
