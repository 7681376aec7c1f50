import type { Statement } from '../../../core/driver.ts'
import { blockersAmong } from '../tx/activity.ts'
import type { LockKey, LockMode } from '../../../core/locks/wanted-lock.ts'
import { keysJson, type LockedKey, marker, wantedRows } from './locks.ts'
import { timeoutColumns } from '../tx/wait-limit.ts'
import { bitOr, eq, lt, minus, ne, shifted, times } from '../sql/operators.ts'

/** Questions about locks that are held: by this transaction, by this backend, by others. */

const keys = '$1::pg_catalog.text::pg_catalog.jsonb'

/** Whether this transaction holds anything; never true outside one. */
export const markerStatement: Statement = {
  text: `SELECT (coalesce(${marker}, '') ${ne} '')::pg_catalog.text AS held`,
  values: [],
  name: 'marker',
}

/**
 * Whether any advisory lock of this backend is really in the lock table, and whether it is the only session there is,
 * where the engine says so.
 */
export const locksAreReal: Statement = {
  text: `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks
    WHERE locktype ${eq} 'advisory' AND granted AND pid ${eq} pg_catalog.pg_backend_pid())::pg_catalog.text AS real,
    (SELECT pg_catalog.jsonb_extract_path_text(pg_catalog.to_jsonb(a), 'backend_type') ${eq} 'standalone backend'
      FROM pg_catalog.pg_stat_activity AS a WHERE a.pid ${eq} pg_catalog.pg_backend_pid())::pg_catalog.text AS alone`,
  values: [],
}

const lockTableRow = `l.locktype ${eq} 'advisory'
  AND l.database ${eq} (SELECT oid FROM pg_catalog.pg_database WHERE datname ${eq} pg_catalog.current_database())
  AND l.objsubid ${eq} wanted.space
  AND ((l.classid::pg_catalog.int8 ${shifted} 32) ${bitOr} l.objid::pg_catalog.int8) ${eq} wanted.id`

/**
 * Whether this backend holds the key, by the lock table: the marker is a setting, and a body can set it. A lock
 * of the session counts as well, since the lock table does not tell them apart.
 */
export function heldStatement(key: LockKey, mode: LockMode): Statement {
  const modes = mode === 'shared' ? '{ExclusiveLock,ShareLock}' : '{ExclusiveLock}'
  return {
    text: `
SELECT EXISTS (SELECT FROM pg_catalog.pg_locks AS l
  WHERE l.pid ${eq} pg_catalog.pg_backend_pid() AND l.granted AND l.mode ${eq} ANY ('${modes}') AND ${lockTableRow})::pg_catalog.text AS held
FROM (${wantedRows(keys)}) AS wanted`,
    values: [keysJson([{ key, mode: 'exclusive' }])],
  }
}

/**
 * Who is in the way of these keys now, other than this backend: for an exclusive lock whoever holds it, for a
 * shared one whoever holds it exclusively or has waited to for longer than this, since nobody is let past those.
 * And which timeouts are in force here: one row at least, without a pid if nobody is found.
 */
export function lockHolders(wanted: readonly LockedKey[], longerMs: number): Statement {
  return {
    text: `
SELECT timeouts.*, holders.*
FROM (SELECT ${timeoutColumns}) AS timeouts LEFT JOIN (${blockersAmong(
      `
    SELECT l.pid, l.virtualtransaction
    FROM (${wantedRows(keys)}) AS wanted
    JOIN pg_catalog.pg_locks AS l ON ${lockTableRow}
    WHERE CASE WHEN wanted.exclusive THEN l.granted ELSE l.mode ${eq} 'ExclusiveLock' AND (l.granted
      OR l.waitstart ${lt} (pg_catalog.clock_timestamp() ${minus} ($2::pg_catalog.text::pg_catalog.float8 ${times} interval '1 ms'))) END`,
      '',
    )}
) AS holders ON true`,
    values: [keysJson(wanted), String(longerMs)],
  }
}

/** Which of these backends still hold these locks; for transactions that end out of our sight. */
export function stillHeld(
  holds: readonly { readonly pid: number; readonly space: number; readonly id: bigint }[],
): Statement {
  return {
    text: `
SELECT DISTINCT l.pid::pg_catalog.text AS pid
FROM pg_catalog.jsonb_to_recordset(${keys}) AS wanted(pid pg_catalog.int4, space pg_catalog.int2, id pg_catalog.int8)
JOIN pg_catalog.pg_locks AS l ON l.pid ${eq} wanted.pid AND l.granted AND ${lockTableRow}`,
    values: [JSON.stringify(holds.map((hold) => ({ ...hold, id: String(hold.id) })))],
  }
}
