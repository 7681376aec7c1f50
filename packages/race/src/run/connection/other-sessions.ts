/** Sessions of clients that are under no control, and what they do meanwhile. */
import { setTimeout } from 'node:timers/promises'
import { type Control, controlPids } from './control.ts'
import { sharedConnections } from './shared-connections.ts'

// What others have begun when is empty for a role that may not know it.
const sessionsText = `
  SELECT pid, concat_ws(' ', query_start, state_change) AS last, application_name AS name
  FROM pg_catalog.pg_stat_activity
  WHERE datname = pg_catalog.current_database() AND backend_type = 'client backend'`

/** How long a session that was hung up may take to be gone. */
const patienceMs = 200

/** The sessions of this database that are not ours, with when each did something last. */
export type OtherSessions = ReadonlyMap<number, string>

export async function otherSessions({ client }: Pick<Control, 'client'>): Promise<OtherSessions> {
  const { rows } = await client.query<{ pid: number; last: string }>(sessionsText)
  const ours = new Set([...controlPids(), ...[...sharedConnections].map(({ pid }) => pid)])
  return new Map(rows.filter(({ pid }) => !ours.has(pid)).map(({ pid, last }) => [pid, last]))
}

/** Whether any of them has sent something since then. One that came and went meanwhile is not seen. */
export async function haveActed(
  control: Pick<Control, 'client'>,
  before: OtherSessions,
): Promise<boolean> {
  const acted = (now: OtherSessions): boolean =>
    [...now].some(([pid, last]) => before.get(pid) !== last)
  if (!acted(await otherSessions(control))) return false
  await setTimeout(patienceMs)
  return acted(await otherSessions(control))
}
