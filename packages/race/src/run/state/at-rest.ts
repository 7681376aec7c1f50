/** Waits for transactions that go on after their code has answered: rows are not what they will be until they are over. */
import { setTimeout } from 'node:timers/promises'
import type { Control } from '../connection/control.ts'
import { sharedConnections } from '../connection/shared-connections.ts'

/** How long a transaction may go on; shorter than the next call of a recording waits for its turn. Later ones have as long. */
const patienceMs = 1_000
const nextLookMs = 5

// Of other roles there is nothing to see for a role that may not.
const underWayText = `
  SELECT pid::text || ' ' || coalesce(xact_start, query_start)::text AS one
  FROM pg_catalog.pg_stat_activity
  WHERE datname = pg_catalog.current_database() AND pid <> pg_catalog.pg_backend_pid()
    AND backend_type = 'client backend' AND application_name <> 'holdfast-race'
    AND state IN ('active', 'idle in transaction', 'idle in transaction (aborted)')`

/** What is returned waits until nobody else has a transaction under way in the database. */
export function createRest({ query }: Pick<Control, 'query'>): () => Promise<void> {
  /** What has gone on for too long: a session that somebody has forgotten, a lock for the life of a process. */
  const given = new Set<unknown>()
  return async () => {
    const deadline = performance.now() + patienceMs
    for (;;) {
      const rows = await query(underWayText)
      const under = [...rows.map(({ one }) => one), ...sending()].filter((one) => !given.has(one))
      if (under.length === 0) return
      if (performance.now() >= deadline) {
        for (const one of under) given.add(one)
        return
      }
      await setTimeout(nextLookMs)
    }
  }
}

/** Of this process it is known before the server knows it. */
function sending(): object[] {
  return [...sharedConnections].filter(
    ({ phase, state }) => phase === 'passing' || (phase === 'idle' && state !== 'I'),
  )
}
