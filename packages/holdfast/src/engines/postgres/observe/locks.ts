import type { Row, Statement } from '../../../core/driver.ts'
import { isoText, millisecondsText } from './settings.ts'
import { eq, ne } from '../sql/operators.ts'

/**
 * Who waits for whom, in one statement: everything in it was seen within a few milliseconds. What costs
 * the server something is done for few: `pg_blocking_pids`, which holds up the lock manager for a moment, is
 * called only for sessions that wait, and names are looked up only of what is shown.
 */

/** A session as pg_stat_activity has it; ages in milliseconds. */
export interface SeenSession {
  readonly pid: number
  /** Of this database. */
  readonly ours: boolean
  readonly database: string | null
  /** The server tells this role neither state nor query nor ages. */
  readonly hidden: boolean
  readonly application: string
  readonly user: string | null
  readonly client: string | null
  /** What runs in it: `client backend`, `autovacuum worker`. */
  readonly type: string | null
  readonly state: string | null
  readonly startedAt: string | null
  readonly stateMs: number | null
  readonly transactionStartedAt: string | null
  readonly transactionMs: number | null
  readonly query: string
  readonly queryMs: number | null
}

/** A row of pg_locks, of parallel workers under the pid of their leader. */
export interface SeenLock {
  /** 0 for a prepared transaction. */
  readonly pid: number
  readonly type: string
  /** Of this database, or of none. */
  readonly ours: boolean
  readonly database: number | null
  readonly relation: number | null
  readonly page: number | null
  readonly tuple: number | null
  readonly virtualxid: string | null
  readonly transactionid: string | null
  readonly classid: number | null
  readonly objid: number | null
  readonly objsubid: number | null
  readonly mode: string
  readonly granted: boolean
  readonly waitMs: number | null
  /** `public.orders`, and what it is by pg_class.relkind; of other databases unknown. */
  readonly table: string | null
  readonly relkind: string | null
  /** Of what is no table: how PostgreSQL describes it. */
  readonly object: string | null
}

/** Everything seen at one moment. */
export interface SeenLocks {
  readonly at: string
  readonly sessions: readonly SeenSession[]
  readonly locks: readonly SeenLock[]
  readonly blocks: readonly { readonly pid: number; readonly by: readonly number[] }[]
  /** Not all locks are here: there are too many. */
  readonly capped: boolean
}

/** More locks than this are not read; those that are waited for come first. */
const mostLocks = 10_000

const tag = `locktype, coalesce(database, 0), coalesce(relation, 0), coalesce(page, 0), coalesce(tuple, 0),
    coalesce(virtualxid, ''), coalesce(transactionid::pg_catalog.text, ''), coalesce(classid, 0), coalesce(objid, 0),
    coalesce(objsubid, 0)`

/** Of this database, or of all of them. */
const ours = `l.database ${eq} 0 OR l.database ${eq} here.oid`

type Reader = 'text' | 'number' | 'flag' | 'pids'

/** What is told of a session, in the order it comes back, and how it is read. */
const ofSession: readonly (readonly [keyof SeenSession, Reader, string])[] = [
  ['pid', 'number', 's.pid'],
  ['ours', 'flag', `coalesce(s.datid ${eq} here.oid, false)`],
  [
    'database',
    'text',
    `(SELECT d.datname FROM pg_catalog.pg_database AS d WHERE d.oid ${eq} s.datid AND d.oid ${ne} here.oid)`,
  ],
  ['hidden', 'flag', `s.query ${eq} '<insufficient privilege>' AND s.state IS NULL`],
  ['application', 'text', 's.application_name'],
  ['user', 'text', 'pg_catalog.pg_get_userbyid(s.usesysid)'],
  [
    'client',
    'text',
    "CASE WHEN s.client_addr IS NOT NULL THEN pg_catalog.concat_ws(':', pg_catalog.host(s.client_addr), s.client_port) END",
  ],
  ['type', 'text', 's.backend_type'],
  ['state', 'text', 's.state'],
  ['startedAt', 'text', isoText('s.backend_start')],
  ['stateMs', 'number', millisecondsText('s.state_change', 'here.moment')],
  ['transactionStartedAt', 'text', isoText('s.xact_start')],
  ['transactionMs', 'number', millisecondsText('s.xact_start', 'here.moment')],
  ['query', 'text', 'pg_catalog.left(s.query, 2000)'],
  [
    'queryMs',
    'number',
    `CASE WHEN s.state ${eq} 'active' THEN ${millisecondsText('s.query_start', 'here.moment')} END`,
  ],
]

/** What is told of a lock. */
const ofLock: readonly (readonly [keyof SeenLock, Reader, string])[] = [
  ['pid', 'number', 'l.pid'],
  ['type', 'text', 'l.locktype'],
  ['ours', 'flag', `coalesce(${ours}, true)`],
  ['database', 'number', 'l.database'],
  ['relation', 'number', 'l.relation'],
  ['page', 'number', 'l.page'],
  ['tuple', 'number', 'l.tuple'],
  ['virtualxid', 'text', 'l.virtualxid'],
  ['transactionid', 'text', 'l.transactionid'],
  ['classid', 'number', 'l.classid'],
  ['objid', 'number', 'l.objid'],
  ['objsubid', 'number', 'l.objsubid'],
  ['mode', 'text', 'l.mode'],
  ['granted', 'flag', 'l.granted'],
  ['waitMs', 'number', millisecondsText('l.waitstart', 'here.moment')],
  ['table', 'text', 'named."table"'],
  ['relkind', 'text', 'named.relkind'],
  [
    'object',
    'text',
    `CASE WHEN l.locktype ${eq} 'object' AND (${ours}) THEN pg_catalog.pg_describe_object(l.classid, l.objid, l.objsubid) END`,
  ],
]

const width = ofLock.length

/** A row of text: making JSON of it would cost the server more than finding it out. */
function rowText(kind: string, values: readonly string[]): string {
  const all = Array.from(
    { length: width },
    (_, at) => `(${values[at] ?? 'NULL'})::pg_catalog.text AS c${at}`,
  )
  return `SELECT '${kind}' AS kind, ${all.join(', ')}`
}

// The functions and not the views of them: their joins are for names that few of the rows need.
const text = `
WITH here AS MATERIALIZED (
  SELECT oid, pg_catalog.clock_timestamp() AS moment
  FROM pg_catalog.pg_database WHERE datname ${eq} pg_catalog.current_database()
), session AS MATERIALIZED (
  SELECT pid, leader_pid, datid, usesysid, application_name, client_addr, client_port, backend_type, state,
         backend_start, state_change, xact_start, query_start, query
  FROM pg_catalog.pg_stat_get_activity(NULL)
), lock AS MATERIALIZED (
  SELECT coalesce(s.leader_pid, l.pid, 0) AS pid, l.locktype, l.database, l.relation, l.page, l.tuple,
         l.virtualxid, l.transactionid, l.classid, l.objid, l.objsubid, l.mode, l.granted, l.waitstart
  FROM pg_catalog.pg_lock_status() AS l LEFT JOIN session AS s ON s.pid ${eq} l.pid
  WHERE l.mode ${ne} 'SIReadLock' AND (l.pid ${eq} pg_catalog.pg_backend_pid()) IS NOT TRUE
), waiting AS MATERIALIZED (
  SELECT DISTINCT pid FROM lock WHERE NOT granted
), blocked AS MATERIALIZED (
  SELECT pid, pg_catalog.pg_blocking_pids(pid) AS blockers FROM waiting
), involved AS MATERIALIZED (
  SELECT pid FROM waiting
  UNION SELECT pg_catalog.unnest(blockers) FROM blocked
  UNION SELECT pid FROM lock
    WHERE locktype ${eq} 'advisory' AND granted AND database ${eq} (SELECT oid FROM here)
  UNION SELECT $1::pg_catalog.text::pg_catalog.int4 WHERE $1::pg_catalog.text IS NOT NULL
), shown AS MATERIALIZED (
  SELECT * FROM lock
  WHERE pid ${eq} ANY (SELECT pid FROM involved) AND (
    NOT granted
    OR locktype ${eq} 'advisory' AND database ${eq} (SELECT oid FROM here)
    OR (${tag}) ${eq} ANY (SELECT ${tag} FROM lock WHERE NOT granted)
    OR pid ${eq} ANY (SELECT pid FROM waiting) AND (locktype ${eq} 'tuple' OR locktype ${eq} 'relation'
      AND database ${eq} (SELECT oid FROM here) AND mode ${eq} ANY ('{RowExclusiveLock,RowShareLock}')))
  ORDER BY granted LIMIT ${mostLocks + 1}
)
${rowText('look', [isoText('here.moment')])}
FROM here
UNION ALL
${rowText('block', ['pid', "pg_catalog.array_to_string(blockers, ',')"])}
FROM blocked
UNION ALL
${rowText(
  'session',
  ofSession.map(([, , sql]) => sql),
)}
FROM here CROSS JOIN session AS s
WHERE s.pid ${eq} ANY (SELECT pid FROM involved)
UNION ALL
${rowText(
  'lock',
  ofLock.map(([, , sql]) => sql),
)}
FROM here CROSS JOIN shown AS l
LEFT JOIN LATERAL (
  SELECT pg_catalog.format('%I.%I', n.nspname, c.relname) AS "table", c.relkind
  FROM pg_catalog.pg_class AS c JOIN pg_catalog.pg_namespace AS n ON n.oid ${eq} c.relnamespace
  WHERE c.oid ${eq} l.relation AND (${ours})
  OFFSET 0) AS named ON true`

/** Sessions that wait, block or hold an advisory lock, and the one that is asked for. */
export function lookAtLocks(pid: number | undefined): Statement {
  return {
    text,
    values: [pid === undefined ? null : String(pid)],
    name: 'observe_locks',
    columns: ['kind', ...Array.from({ length: width }, (_, at) => `c${at}`)],
  }
}

/** Reads what `lookAtLocks` answers. */
export function seenLocks(rows: readonly Row[]): SeenLocks {
  const kinds = Map.groupBy(rows, (row) => row['kind'])
  const of = <T>(
    kind: string,
    columns: readonly (readonly [keyof T, Reader, ...unknown[]])[],
  ): T[] =>
    (kinds.get(kind) ?? []).map(
      (row) =>
        Object.fromEntries(columns.map(([name, as], at) => [name, read(row[`c${at}`], as)])) as T,
    )
  const [look] = of<Pick<SeenLocks, 'at'>>('look', [['at', 'text']])
  const locks = of<SeenLock>('lock', ofLock)
  return {
    at: look?.at ?? '',
    sessions: of<SeenSession>('session', ofSession),
    locks: locks.slice(0, mostLocks),
    blocks: of<SeenLocks['blocks'][number]>('block', [
      ['pid', 'number'],
      ['by', 'pids'],
    ]),
    capped: locks.length > mostLocks,
  }
}

function read(value: unknown, as: Reader): unknown {
  if (as === 'pids') return value === '' ? [] : String(value).split(',').map(Number)
  if (value === null || value === undefined) return null
  if (as === 'number') return Number(value)
  return as === 'flag' ? value === 'true' : value
}

/** Transactions that were prepared in this database and have no session. */
export const preparedTransactions: Statement = {
  text: `SELECT p.gid, p.owner::pg_catalog.text AS owner,
  ${millisecondsText('p.prepared', 'pg_catalog.clock_timestamp()')}::pg_catalog.text AS age
FROM pg_catalog.pg_prepared_xacts AS p WHERE p.database ${eq} pg_catalog.current_database()
ORDER BY p.prepared LIMIT 100`,
  values: [],
  columns: ['gid', 'owner', 'age'],
}
