import { Client } from 'pg'
import { uncontrolled } from './shared-connections.ts'
import { refuse } from './unreachable.ts'

/** One lock, or one that is waited for, as `pg_locks` shows it. */
export interface HeldLock {
  readonly locktype: string
  /** Object id of the relation; 0 if it is another kind of lock. */
  readonly relation: number
  readonly mode: string
  /** `0:42` for an advisory lock, else empty. */
  readonly key: string
  readonly granted: boolean
}

/** What a session of ours waits for. */
export interface Wait {
  readonly pid: number
  /** Sessions that stand in the way; empty if none does. */
  readonly blockers: readonly number[]
}

/** The runner's own connection: it looks at the others and never takes part. */
export interface Control {
  readonly client: Client
  /** The server's process of this connection. */
  readonly pid: number
  /** Rows as they are; for the user's seed and invariant. */
  query(text: string, values?: readonly unknown[]): Promise<Record<string, unknown>[]>
  /** What these sessions wait for. `allWaits` is about all sessions of this database. */
  waits(pids: readonly number[]): Promise<Wait[]>
  allWaits(): Promise<Wait[]>
  /** Whether any session of this database runs a statement, apart from this one. */
  isBusy(): Promise<boolean>
  locks(pid: number): Promise<HeldLock[]>
  /** Whether each of these sessions stands in the way of the one before it by a lock that it has. */
  holdsAgainst(waiting: number, blocker: number): Promise<boolean>
  cancel(pid: number): Promise<void>
  terminate(pids: readonly number[]): Promise<void>
  /** Who somebody outside of the run is, for a message. */
  describe(pids: readonly number[]): Promise<string>
  /** Leaves the database, so that it can be made anew, and comes back. */
  away(work: () => Promise<void>): Promise<void>
  close(): Promise<void>
}

// Waiting for a lock, or for a snapshot that is safe to read from (SERIALIZABLE DEFERRABLE).
// pg_blocking_pids takes the lock manager's own lock, so only those who wait are asked for.
const waitsOf = (which: string): string => `
  SELECT a.pid,
         CASE WHEN a.wait_event_type = 'Lock' THEN pg_catalog.pg_blocking_pids(a.pid)
              WHEN a.wait_event = 'SafeSnapshot'
                THEN pg_catalog.pg_safe_snapshot_blocking_pids(a.pid)
              ELSE '{}' END AS blockers
  FROM pg_catalog.pg_stat_activity a
  WHERE ${which}`
const waitsText = waitsOf('a.pid = ANY($1::int[])')
const allWaitsText = waitsOf('a.datname = pg_catalog.current_database()')

const busyText = `
  SELECT FROM pg_catalog.pg_stat_activity
  WHERE state = 'active' AND datname = pg_catalog.current_database() AND pid <> pg_catalog.pg_backend_pid() LIMIT 1`

const locksText = `
  SELECT locktype, coalesce(relation, 0)::int8::text AS relation, mode, granted,
         CASE WHEN locktype = 'advisory' THEN classid::text || ':' || objid::text ||
           CASE WHEN objsubid = 2 THEN ':2' ELSE '' END ELSE '' END AS key
  FROM pg_catalog.pg_locks
  WHERE pid = $1 AND (locktype IN ('advisory', 'transactionid')
    OR locktype = 'relation' AND relation >= 16384 AND mode <> 'SIReadLock')
  ORDER BY pg_locks.relation, mode`

// A waiting lock and a granted one on the same thing: then it is not a mere place in a queue.
const againstText = `
  SELECT w.mode AS wanted, h.mode AS held
  FROM pg_catalog.pg_locks w JOIN pg_catalog.pg_locks h
    ON (w.locktype, w.database, w.relation, w.page, w.tuple, w.virtualxid, w.transactionid,
        w.classid, w.objid, w.objsubid)
       IS NOT DISTINCT FROM
       (h.locktype, h.database, h.relation, h.page, h.tuple, h.virtualxid, h.transactionid,
        h.classid, h.objid, h.objsubid)
  WHERE w.pid = $1 AND h.pid = $2 AND NOT w.granted AND h.granted`

const conflicts: Readonly<Record<string, readonly string[]>> = {
  AccessShareLock: ['AccessExclusiveLock'],
  RowShareLock: ['ExclusiveLock', 'AccessExclusiveLock'],
  RowExclusiveLock: ['ShareLock', 'ShareRowExclusiveLock', 'ExclusiveLock', 'AccessExclusiveLock'],
  ShareUpdateExclusiveLock: [
    'ShareUpdateExclusiveLock',
    'ShareLock',
    'ShareRowExclusiveLock',
    'ExclusiveLock',
    'AccessExclusiveLock',
  ],
  ShareLock: [
    'RowExclusiveLock',
    'ShareUpdateExclusiveLock',
    'ShareRowExclusiveLock',
    'ExclusiveLock',
    'AccessExclusiveLock',
  ],
}

function conflict(wanted: string, held: string): boolean {
  const known = conflicts[wanted]
  if (known) return known.includes(held)
  if (conflicts[held]) return conflicts[held].includes(wanted)
  // What is left are the three strongest modes, which exclude one another.
  return true
}

export async function connectControl(url: string): Promise<Control> {
  let { client, pid: own } = await connect(url)
  const ownPid = (): number => own
  openControls.add(ownPid)

  async function waits(pids: readonly number[]): Promise<Wait[]> {
    const { rows } = await client.query<{ pid: number; blockers: number[] }>({
      name: 'holdfast_race_waits',
      text: waitsText,
      values: [pids],
    })
    return rows
  }

  async function locks(pid: number): Promise<HeldLock[]> {
    const { rows } = await client.query<HeldLock & { relation: string }>({
      name: 'holdfast_race_locks',
      text: locksText,
      values: [pid],
    })
    return rows.map((row) => ({ ...row, relation: Number(row.relation) }))
  }

  async function holdsAgainst(waiting: number, blocker: number): Promise<boolean> {
    const { rows } = await client.query<{ wanted: string; held: string }>(againstText, [
      waiting,
      blocker,
    ])
    return rows.some(({ wanted, held }) => conflict(wanted, held))
  }

  async function describe(pids: readonly number[]): Promise<string> {
    const { rows } = await client.query<{ pid: number; name: string; query: string }>(
      `SELECT pid, coalesce(nullif(application_name, ''), backend_type) AS name,
              left(regexp_replace(coalesce(query, ''), '\\s+', ' ', 'g'), 80) AS query
       FROM pg_catalog.pg_stat_activity WHERE pid = ANY($1::int[])`,
      [pids],
    )
    return rows.map(({ pid, name, query }) => `${name} (pid ${pid}: ${query})`).join(', ')
  }

  return {
    get client() {
      return client
    },
    get pid() {
      return own
    },
    async query(text, values) {
      const { rows } = await client.query<Record<string, unknown>>(text, values?.slice())
      return rows
    },
    waits,
    allWaits: async () => (await client.query<Wait>(allWaitsText)).rows,
    isBusy: async () => (await client.query(busyText)).rows.length > 0,
    locks,
    holdsAgainst,
    async cancel(pid) {
      await client.query('SELECT pg_catalog.pg_cancel_backend($1)', [pid])
    },
    async terminate(pids) {
      if (pids.length === 0) return
      await client.query(
        'SELECT pg_catalog.pg_terminate_backend(pid) FROM unnest($1::int[]) AS t (pid)',
        [pids],
      )
    },
    describe,
    async away(work) {
      await client.end()
      await work()
      ;({ client, pid: own } = await connect(url))
    },
    close() {
      openControls.delete(ownPid)
      return client.end()
    },
  }
}

/** Of each control connection of this process its session. */
const openControls = new Set<() => number>()

/** Sessions of all control connections of this process. */
export function controlPids(): number[] {
  return Array.from(openControls, (pid) => pid())
}

async function connect(url: string): Promise<{ client: Client; pid: number }> {
  const client = new Client({ connectionString: url, application_name: 'holdfast-race' })
  uncontrolled.add(client)
  // A lost control connection makes the next query fail; without a listener it would end the process.
  client.on('error', () => undefined)
  await client.connect().catch(refuse)
  await client.query(`SET statement_timeout = 0; SET idle_in_transaction_session_timeout = 0`)
  const { rows } = await client.query<{ pid: number }>('SELECT pg_catalog.pg_backend_pid() AS pid')
  return { client, pid: rows[0]?.pid ?? 0 }
}
