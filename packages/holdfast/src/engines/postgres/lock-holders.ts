import type { Statement } from '../../core/driver.ts'
import type { LockKey } from '../../core/lock-key.ts'
import { blockersAmong } from './activity.ts'
import { keysJson, type LockedKey, type LockMode, marker, wantedRows } from './locks.ts'
import { timeoutColumns } from './wait-limit.ts'

/** Questions about locks that are held: by this transaction, by this backend, by others. */

const keys = '$1::text::jsonb'

/** Whether this transaction holds anything; never true outside one. */
export const markerStatement: Statement = {
  text: `SELECT (coalesce(${marker}, '') <> '')::text AS held`,
  values: [],
  name: 'marker',
}

/** Whether any advisory lock of this backend is really in the lock table. */
export const locksAreReal: Statement = {
  text: `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND granted AND pid = pg_catalog.pg_backend_pid())::text AS real`,
  values: [],
}

const lockTableRow = `l.locktype = 'advisory'
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND l.objsubid = wanted.space
  AND ((l.classid::int8 << 32) | l.objid::int8) = wanted.id`

/**
 * Whether this backend holds the key, by the lock table: the marker is a setting, and a body can set it. A lock
 * of the session counts as well, since the lock table does not tell them apart.
 */
export function heldStatement(key: LockKey, mode: LockMode): Statement {
  const modes = mode === 'shared' ? "('ExclusiveLock', 'ShareLock')" : "('ExclusiveLock')"
  return {
    text: `
SELECT EXISTS (SELECT FROM pg_catalog.pg_locks AS l
  WHERE l.pid = pg_catalog.pg_backend_pid() AND l.granted AND l.mode IN ${modes} AND ${lockTableRow})::text AS held
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
    WHERE CASE WHEN wanted.exclusive THEN l.granted ELSE l.mode = 'ExclusiveLock' AND (l.granted
      OR l.waitstart < pg_catalog.clock_timestamp() - $2::text::float8 * interval '1 ms') END`,
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
SELECT DISTINCT l.pid::text AS pid
FROM pg_catalog.jsonb_to_recordset(${keys}) AS wanted(pid int4, space int2, id int8)
JOIN pg_catalog.pg_locks AS l ON l.pid = wanted.pid AND l.granted AND ${lockTableRow}`,
    values: [JSON.stringify(holds.map((hold) => ({ ...hold, id: String(hold.id) })))],
  }
}
