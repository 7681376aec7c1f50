import { setTimeout as pause } from 'node:timers/promises'
import { Client } from 'pg'

/** Ends the waits that would make isolationtester hang for minutes; one for all of a server. */
export interface Referee extends AsyncDisposable {
  /** What an isolationtester must call itself (`PGAPPNAME`) to be watched. */
  readonly watched: string
}

interface Stalled {
  readonly pids: number[]
}

/**
 * isolationtester waits up to five minutes when a permutation wants a step of a session that is
 * still blocked. The referee sees that nothing has moved for a while, nobody is at work and
 * somebody waits for a lock, and cancels the waiting statements. It may be wrong on a busy machine:
 * `tellFeasible` notices, and the permutation is run again.
 */
export async function startReferee(url: string, watched: string): Promise<Referee> {
  const client = new Client({ connectionString: url, application_name: 'referee' })
  await client.connect()
  let ended = false
  const watching = watch(client, watched, () => ended)
  // Whoever awaits the referee's end gets the error; until then it must not end the process.
  watching.catch(() => {})
  return {
    watched,
    async [Symbol.asyncDispose]() {
      ended = true
      await watching
      await client.end()
    },
  }
}

async function watch(client: Client, watched: string, ended: () => boolean): Promise<void> {
  while (!ended()) {
    const { rows } = await client.query<Stalled>(
      // A session that became active or idle has moved; so has the control connection, which asks
      // again and again as long as isolationtester is still willing to go on with others.
      `SELECT array_agg(pid) FILTER (WHERE state = 'active') AS pids
         FROM pg_stat_activity
        WHERE starts_with(application_name, $1)
        GROUP BY split_part(application_name, '/', 1)
       HAVING bool_or(state = 'active')
          AND bool_and(state <> 'active' OR wait_event_type = 'Lock')
          AND max(state_change) < clock_timestamp() - interval '30 ms'`,
      [watched],
    )
    for (const { pids } of rows) {
      if (!(await isStuck(client, pids))) continue
      await client.query('SELECT pg_cancel_backend(pid) FROM unnest($1::int[]) AS pid', [pids])
    }
    await pause(5)
  }
}

/** Everybody still waits, and not in a circle: that would end by itself, with a victim. */
async function isStuck(client: Client, pids: readonly number[]): Promise<boolean> {
  const { rows } = await client.query<{ pid: number; blockers: number[] }>(
    'SELECT pid, pg_blocking_pids(pid) AS blockers FROM unnest($1::int[]) AS pid',
    [pids],
  )
  const blockersOf = new Map(rows.map(({ pid, blockers }) => [pid, blockers]))
  const reaches = (from: number, goal: number, seen: Set<number>): boolean =>
    (blockersOf.get(from) ?? []).some((pid) => {
      if (pid === goal) return true
      if (seen.has(pid)) return false
      seen.add(pid)
      return reaches(pid, goal, seen)
    })
  return rows.every(({ pid, blockers }) => blockers.length > 0 && !reaches(pid, pid, new Set()))
}
