import { barrier } from '@holdfast/testkit'
import { splitApplication } from '../../packages/holdfast/src/engines/postgres/tx/activity.ts'
import { ask, rowsOf } from '../cluster/ask.ts'
import type { RunnableCluster } from '../cluster/parts.ts'
import type { Doors } from '../core/model.ts'

/** PgBouncer itself sets these to what the client at hand has. */
const poolersOwn = [
  'application_name',
  'client_encoding',
  'DateStyle',
  'TimeZone',
  'standard_conforming_strings',
  'IntervalStyle',
]

/**
 * What the last user of a pooled connection left for the next: settings, prepared statements, listeners,
 * locks of the session. Nobody but the session itself can see them, so all of them are asked at once: each
 * question holds its connection until every other one has its own.
 */
export async function leftInPool(
  cluster: RunnableCluster,
  database: string,
  doors: Doors,
): Promise<string[]> {
  const idle = await ask(cluster.pooler.adminUrl, async (console) => {
    const { rows } = await console.query<{ database: string; remote_pid: number }>('SHOW SERVERS')
    return rows.filter((row) => row.database === database).map((row) => Number(row.remote_pid))
  })
  if (idle.length === 0) return []
  const named = await rowsOf<{ name: string }>(
    cluster.adminUrl(database),
    'SELECT application_name AS name FROM pg_stat_activity WHERE pid = ANY ($1::int[])',
    [idle],
  )
  const labelled = named
    .filter(({ name }) => splitApplication(name).label !== undefined)
    .map(({ name }) => `a pooled connection is still called "${name}"`)
  const everyoneHasOne = barrier(idle.length)
  const found = await Promise.all(
    idle.map(async () => await lookInside(doors.pooled, everyoneHasOne)),
  )
  return [...labelled, ...new Set(found.flat())]
}

async function lookInside(url: string, everyoneHasOne: () => Promise<void>): Promise<string[]> {
  return await ask(url, async (client) => {
    await client.query('BEGIN')
    try {
      await everyoneHasOne()
      const { rows } = await client.query<{ what: string }>(
        `SELECT format('setting %s = %s', name, setting) AS what FROM pg_settings
           WHERE source = 'session' AND name <> ALL ($1::text[]) AND setting IS DISTINCT FROM reset_val
         UNION ALL SELECT 'prepared statement ' || left(statement, 60) FROM pg_prepared_statements WHERE name <> ''
         UNION ALL SELECT 'listens to ' || pg_listening_channels()
         UNION ALL SELECT 'session lock ' || objid FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'advisory'`,
        [poolersOwn],
      )
      return rows.map(({ what }) => `left on a pooled connection: ${what}`)
    } finally {
      await client.query('ROLLBACK')
    }
  })
}
