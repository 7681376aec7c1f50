import {
  type PgBouncer,
  type PostgresServer,
  startPgBouncer,
  startPostgres,
} from '@holdfast/testkit'
import type { TestProject } from 'vitest/node'

declare module 'vitest' {
  interface ProvidedContext {
    /** Direct to the server, database `postgres`. */
    postgresUrl: string
    /** The same server through PgBouncer in transaction mode. */
    pgbouncerUrl: string
    /** Whether the code under test is to connect through PgBouncer in this project. */
    throughPooler: boolean
  }
}

interface SharedServers {
  readonly postgres: PostgresServer
  readonly pgbouncer: PgBouncer
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
  return { postgres, pgbouncer: await startPgBouncer(postgres) }
}

/** Vitest's global setup: the first project of a run starts the servers, the last one stops them. */
export async function setup(project: TestProject): Promise<() => Promise<void>> {
  shelf.holdfastShare ??= { starting: startServers(), users: 0 }
  const share = shelf.holdfastShare
  share.users += 1
  const { postgres, pgbouncer } = await share.starting
  project.provide('postgresUrl', postgres.url())
  project.provide('pgbouncerUrl', pgbouncer.url())
  return async () => {
    share.users -= 1
    if (share.users > 0) return
    shelf.holdfastShare = undefined
    await pgbouncer.stop()
    await postgres.stop('immediate')
  }
}
