import { ask, rowsOf } from '../cluster/ask.ts'
import type { RunnableCluster } from '../cluster/parts.ts'

/** Who is connected where and does what: for whoever asks why an application does not come to its end. */
export async function whoIsThere(cluster: RunnableCluster, database: string): Promise<string> {
  const atPooler = ask(cluster.pooler.adminUrl, async (console) => {
    const clients = await console.query<{ database: string }>('SHOW CLIENTS')
    const servers = await console.query<{ database: string }>('SHOW SERVERS')
    return [...clients.rows, ...servers.rows].filter((row) => row.database === database)
  })
  const atServer = rowsOf(
    cluster.adminUrl('postgres'),
    `SELECT pid, state, wait_event_type, wait_event, xact_start, query, pg_blocking_pids(pid) AS blockers
     FROM pg_stat_activity WHERE datname = $1`,
    [database],
  )
  const ports = cluster.ports.map(({ name, connections }) => ({ name, connections }))
  return JSON.stringify(
    { ports, pooler: await atPooler.catch(String), server: await atServer.catch(String) },
    undefined,
    1,
  )
}
