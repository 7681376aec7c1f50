import type { Statement } from '../../core/driver.ts'
import type { LockKey } from '../../core/lock-key.ts'
import { keysJson, type LockMode, marker, type WantedLock, wantedRows } from './locks.ts'

/** Questions about locks that are held: by this transaction, by this backend, by others. */

const keys = '$1::text::jsonb'

/** Whether this transaction holds anything; never true outside one. */
export const markerStatement: Statement = {
  text: `SELECT coalesce(${marker}, '') <> '' AS held`,
  values: [],
  name: 'marker',
}

/** Whether this transaction holds the key, by the transaction-local marker. */
export function heldStatement(key: LockKey, mode: LockMode): Statement {
  const has = (letter: string): string =>
    `pg_catalog.strpos(coalesce(${marker}, ''), ',${letter}' || number || ',') > 0`
  const test = mode === 'shared' ? `${has('x')} OR ${has('s')}` : has('x')
  return {
    text: `SELECT ${test} AS held FROM (${wantedRows(keys)}) AS wanted`,
    values: [keysJson([{ key, mode: 'exclusive' }])],
  }
}

/** Whether any advisory lock of this backend is really in the lock table. */
export const locksAreReal: Statement = {
  text: `SELECT EXISTS (SELECT FROM pg_catalog.pg_locks
    WHERE locktype = 'advisory' AND granted AND pid = pg_catalog.pg_backend_pid()) AS real`,
  values: [],
}

const lockTableRow = `l.locktype = 'advisory' AND l.granted
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND l.objsubid = wanted.space
  AND ((l.classid::int8 << 32) | l.objid::int8) = wanted.id`

/** Who holds these keys now, other than this backend. */
export function lockHolders(wanted: readonly WantedLock[]): Statement {
  return {
    text: `
SELECT DISTINCT a.pid, a.application_name, coalesce(a.state, '') AS state, coalesce(a.query, '') AS query,
       coalesce(extract(epoch FROM pg_catalog.clock_timestamp() - a.xact_start) * 1000, 0)::int8::text AS age_ms
FROM (${wantedRows(keys)}) AS wanted
JOIN pg_catalog.pg_locks AS l ON ${lockTableRow}
JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.pid <> pg_catalog.pg_backend_pid()`,
    values: [keysJson(wanted)],
  }
}

/** Which of these backends still hold these locks; for transactions that end out of our sight. */
export function stillHeld(
  holds: readonly { readonly pid: number; readonly space: number; readonly id: bigint }[],
): Statement {
  return {
    text: `
SELECT DISTINCT l.pid
FROM pg_catalog.jsonb_to_recordset(${keys}) AS wanted(pid int4, space int2, id int8)
JOIN pg_catalog.pg_locks AS l ON l.pid = wanted.pid AND ${lockTableRow}`,
    values: [JSON.stringify(holds.map((hold) => ({ ...hold, id: String(hold.id) })))],
  }
}
