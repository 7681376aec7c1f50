import { waitUntil } from '@holdfast/testkit'
import type { Client } from 'pg'
import { ask } from '../cluster/ask.ts'
import type { RunnableCluster } from '../cluster/parts.ts'
import type { Doors, HistoryEvent, Violation } from '../core/model.ts'
import { leftInPool } from './left-in-pool.ts'
import { unexplainedHolds } from './unexplained-holds.ts'

/** Whoever was killed is noticed by the server only when it wants to answer. */
const defaultDepartureMs = 8_000

/**
 * What is left when everybody has gone: connections, transactions, locks, settings and statements on the
 * pooler's connections, holds, files, prepared transactions, slots. Each is a violation of its own.
 */
export async function countLeaks(
  cluster: RunnableCluster,
  database: string,
  doors: Doors,
  history: readonly HistoryEvent[],
  departureMs: number = defaultDepartureMs,
): Promise<Violation[]> {
  const leaks: Violation[] = []
  const leak = (what: string): void => {
    leaks.push({ rule: 'leak', workload: 'all', what })
  }
  for (const port of cluster.ports.slice(0, 2)) {
    await untilNone(departureMs, () => port.connections).catch(() => {
      leak(`${port.connections} connections of applications are open at ${port.name}`)
    })
  }
  await ask(cluster.adminUrl(database), async (client) => {
    for (const what of await connectionsLeft(cluster, client, departureMs)) leak(what)
    for (const what of await leftInPool(cluster, database, doors)) leak(what)
    for (const [name, text] of Object.entries(mustBeEmpty)) {
      const { rows } = await client.query<{ what: string }>(
        text,
        name === 'slots' ? [[...cluster.ownSlots]] : [],
      )
      if (rows.length > 0) leak(`${name}: ${rows.map(({ what }) => what).join(', ')}`)
    }
    for (const what of await unexplainedHolds(client, history)) leak(what)
  })
  return leaks
}

/** Backends that are neither ours nor the pooler's, or not at rest. */
async function connectionsLeft(
  cluster: RunnableCluster,
  client: Client,
  departureMs: number,
): Promise<string[]> {
  const look = async (): Promise<string[]> => {
    const pooled = await ask(cluster.pooler.adminUrl, async (console) => {
      const { rows } = await console.query<{ remote_pid: number }>('SHOW SERVERS')
      return rows.map(({ remote_pid: pid }) => Number(pid))
    })
    const { rows } = await client.query<{ what: string }>(
      `SELECT format('process %s, %s, %s', pid, coalesce(state, '?'), left(query, 80)) AS what
       FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
       AND backend_type = 'client backend' AND (state <> 'idle' OR pid <> ALL ($1::int[]))`,
      [pooled],
    )
    return rows.map(({ what }) => `a connection that nobody has: ${what}`)
  }
  let left: string[] = []
  await untilNone(departureMs, async () => {
    left = await look()
    return left.length
  }).catch(() => undefined)
  return left
}

async function untilNone(limitMs: number, count: () => number | Promise<number>): Promise<void> {
  await waitUntil('none is left', async () => ((await count()) === 0 ? true : undefined), {
    limitMs,
    everyMs: 20,
  })
}

const mustBeEmpty: Readonly<Record<string, string>> = {
  locks: `SELECT format('%s %s by process %s', locktype, mode, l.pid) AS what
    FROM pg_locks l LEFT JOIN pg_stat_activity a USING (pid)
    WHERE pid IS DISTINCT FROM pg_backend_pid()
      AND (pid IS NULL OR a.backend_type = 'client backend' AND a.datname = current_database())`,
  'prepared transactions': `SELECT gid AS what FROM pg_prepared_xacts`,
  slots: `SELECT slot_name::text AS what FROM pg_replication_slots WHERE slot_name <> ALL ($1::text[])`,
  'temporary files': `SELECT name AS what FROM pg_ls_tmpdir()`,
  'temporary tables': `SELECT oid::regclass::text AS what FROM pg_class WHERE relpersistence = 't'`,
  'files of temporary tables': `SELECT f AS what FROM pg_ls_dir(
      'base/' || (SELECT oid FROM pg_database WHERE datname = current_database())) f
    WHERE f ~ '^t[0-9]+_'`,
}
