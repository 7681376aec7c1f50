import type { Statement } from '../../core/driver.ts'
import { type TableName, tableText } from './identifier.ts'
import { type RowTarget, sameKey, typedRecord } from './rows.ts'
import { conflictingModes, type TableLockMode } from './table-lock.ts'

/**
 * Who stands in the way of a row or table lock, asked right after the wait was given up. Rows keep
 * their lockers in `xmax`: a transaction id, or the id of a group of them (a multixact). SQL cannot
 * tell which, so a transaction only counts if it also holds a lock on the table.
 */

const activity = `
SELECT DISTINCT a.pid, a.application_name, coalesce(a.state, '') AS state, coalesce(a.query, '') AS query,
       coalesce(extract(epoch FROM pg_catalog.clock_timestamp() - a.xact_start) * 1000, 0)::int8::text AS age_ms`

/** The looking must not wait itself: the caller's error is held back for it. */
export function boundLookup(ms: number): Statement {
  return {
    text: `SELECT pg_catalog.set_config('lock_timeout', $1::text, true) AS lock_timeout,
      pg_catalog.set_config('statement_timeout', $1::text, true) AS statement_timeout,
      pg_catalog.pg_backend_pid() AS pid`,
    values: [String(ms)],
    name: 'holdfast_lookup',
    columns: ['lock_timeout', 'statement_timeout', 'pid'],
  }
}

/**
 * Holders of locks, on the table or a partition of it, that a request for this mode has to wait
 * for. Reads the catalogue and not the table, which may be locked.
 */
export function tableLockHolders(table: TableName, mode: TableLockMode): Statement {
  return {
    text: `${activity}
FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.locktype = 'relation' AND l.granted
  AND (l.relation = pg_catalog.to_regclass($1::text) OR l.relation IN (
    SELECT inhrelid FROM pg_catalog.pg_inherits WHERE inhparent = pg_catalog.to_regclass($1::text)))
  AND l.database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())
  AND l.mode = ANY (pg_catalog.string_to_array($2::text, ','))
  AND l.pid <> pg_catalog.pg_backend_pid()`,
    values: [tableText(table), conflictingModes(mode).join(',')],
  }
}

/** Transactions that are themselves in the `xmax` of the rows. */
export function rowLockHolders(target: RowTarget, keysJson: string): Statement {
  return holders(target, keysJson, '"#row".xmax', '')
}

/**
 * Transactions that are members of a group in the `xmax` of the rows. Fails where an `xmax` is no
 * group, so ask `rowLockHolders` first and take an error for "nobody found".
 */
export function rowShareHolders(target: RowTarget, keysJson: string): Statement {
  return holders(
    target,
    keysJson,
    '"#member".xid',
    `CROSS JOIN LATERAL pg_catalog.pg_get_multixact_members("#row".xmax) AS "#member"
  WHERE "#row".xmax <> '0'`,
  )
}

function holders(
  { table, keyColumns }: RowTarget,
  keysJson: string,
  locker: string,
  members: string,
): Statement {
  const name = tableText(table)
  return {
    text: `${activity}
FROM (
  SELECT ${locker} AS locker, "#row".tableoid AS relation
  FROM pg_catalog.jsonb_array_elements($1::text::jsonb) AS "#element"("#value")
  CROSS JOIN LATERAL ${typedRecord(name, '"#element"."#value"')} AS "#wanted"
  JOIN ${name} AS "#row" ON ${sameKey('"#row"', '"#wanted"', keyColumns)}
  ${members}
) AS r
JOIN pg_catalog.pg_locks AS l ON l.locktype = 'transactionid' AND l.granted AND l.transactionid = r.locker
JOIN pg_catalog.pg_stat_activity AS a ON a.pid = l.pid
WHERE l.pid <> pg_catalog.pg_backend_pid()
  AND EXISTS (SELECT FROM pg_catalog.pg_locks AS held
    WHERE held.pid = l.pid AND held.locktype = 'relation' AND held.granted AND held.relation = r.relation)`,
    values: [keysJson],
  }
}
