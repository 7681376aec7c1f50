import type { Statement } from '../../../core/driver.ts'
import { blockersAmong } from '../tx/activity.ts'
import type { TableName } from '../../../core/table-name.ts'
import { tableText } from '../sql/identifier.ts'
import type { RowStrength, TableLockMode } from '../../../rows/engine.ts'
import { type ComparedTarget, sameKey, typedRecord } from './rows.ts'
import { conflictingModes } from './table-lock.ts'
import { eq, lt, minus, ne, times } from '../sql/operators.ts'

/** Who has waited, and wants to know for whom. */
export interface Waiter {
  readonly waitedMs: number
  /** Its backend, where that is known: in a savepoint it still has what it had before. */
  readonly pid: number | undefined
  /** It had locked the table, or rows of it, so that whoever waits for the table waits for it. */
  readonly hasTable: boolean
}

/**
 * Who stands in the way of a row or table lock, asked right after the wait was given up. Rows keep
 * their lockers in `xmax`: a transaction id, or the id of a group of them (a multixact). SQL cannot
 * tell which, so a transaction only counts if it also holds a lock on the table.
 */

/** Those who hold these, without who asks and who waits. */
function activityOf(holders: string, waiter: string): string {
  return blockersAmong(
    holders,
    ` AND (a.pid ${eq} ${waiter}::pg_catalog.text::pg_catalog.int4) IS NOT TRUE`,
  )
}

/** The looking must not wait itself: the caller's error is held back for it. */
export function boundLookup(ms: number): Statement {
  return {
    text: `SELECT pg_catalog.set_config('lock_timeout', $1::pg_catalog.text, true) AS lock_timeout,
      pg_catalog.set_config('statement_timeout', $1::pg_catalog.text, true) AS statement_timeout,
      pg_catalog.pg_backend_pid()::pg_catalog.text AS pid`,
    values: [String(ms)],
    name: 'holdfast_lookup',
    columns: ['lock_timeout', 'statement_timeout', 'pid'],
  }
}

/**
 * Holders of locks on the table, on what it is made of and on the indexes of all that, which a request for
 * this mode has to wait for; and who has waited for such a lock for longer than this request, which came
 * after them. Reads the catalogue and not the table, which may be locked.
 */
export function tableLockHolders(
  table: TableName,
  mode: TableLockMode,
  { waitedMs, pid, hasTable }: Waiter,
  indexes = true,
): Statement {
  return {
    text: `
WITH RECURSIVE part AS (
  SELECT pg_catalog.to_regclass($1::pg_catalog.text)::pg_catalog.oid AS relation
  UNION
  SELECT i.inhrelid FROM part JOIN pg_catalog.pg_inherits AS i ON i.inhparent ${eq} part.relation
), whole AS (
  SELECT relation FROM part
  UNION ALL
  SELECT i.indexrelid FROM part JOIN pg_catalog.pg_index AS i ON i.indrelid ${eq} part.relation
  WHERE ${indexes ? 'true' : 'false'}
)${activityOf(
      `
  SELECT l.pid, l.virtualtransaction
  FROM whole JOIN pg_catalog.pg_locks AS l ON l.locktype ${eq} 'relation' AND l.relation ${eq} whole.relation
  WHERE (l.granted OR l.waitstart ${lt} (pg_catalog.statement_timestamp() ${minus} ($3::pg_catalog.text::pg_catalog.float8 ${times} interval '1 ms')))
    AND l.database ${eq} (SELECT oid FROM pg_catalog.pg_database WHERE datname ${eq} pg_catalog.current_database())
    AND l.mode ${eq} ANY (pg_catalog.string_to_array($2::pg_catalog.text, ','))`,
      '$4',
    )}`,
    values: [
      tableText(table),
      conflictingModes(mode).join(','),
      hasTable ? null : String(waitedMs),
      pidText(pid),
    ],
  }
}

function pidText(pid: number | undefined): string | null {
  return pid === undefined ? null : String(pid)
}

/**
 * Transactions that are themselves in the `xmax` of the rows. How they have locked them SQL cannot tell, so one
 * that has locked them too weakly to be in the way is among them.
 */
export function rowLockHolders(
  target: ComparedTarget,
  keysJson: string,
  { pid }: Waiter,
): Statement {
  return holders(target, '"#row".xmax', '', [keysJson, pidText(pid)])
}

/** As what members of a group have locked a row that a lock of this strength has to wait for. */
const inTheWayOf: Readonly<Record<RowStrength, string>> = {
  'key share': 'upd,forupd',
  share: 'upd,forupd,nokeyupd,fornokeyupd',
  'no key update': 'upd,forupd,nokeyupd,fornokeyupd,sh',
  update: 'upd,forupd,nokeyupd,fornokeyupd,sh,keysh',
}

/**
 * Transactions that are members of a group in the `xmax` of the rows. Fails where an `xmax` is no
 * group, so ask `rowLockHolders` first and take an error for "nobody found".
 */
export function rowShareHolders(
  target: ComparedTarget,
  keysJson: string,
  strength: RowStrength,
  { pid }: Waiter,
): Statement {
  return holders(
    target,
    '"#member".xid',
    `CROSS JOIN LATERAL pg_catalog.pg_get_multixact_members("#row".xmax) AS "#member"
    WHERE "#row".xmax ${ne} '0' AND "#member".mode ${eq} ANY (pg_catalog.string_to_array($3::pg_catalog.text, ','))`,
    [keysJson, pidText(pid), inTheWayOf[strength]],
  )
}

function holders(
  target: ComparedTarget,
  locker: string,
  members: string,
  values: Statement['values'],
): Statement {
  const name = tableText(target.table)
  return {
    text: activityOf(
      `
  SELECT l.pid, l.virtualtransaction
  FROM (
    SELECT ${locker} AS locker, "#row".tableoid AS relation
    FROM pg_catalog.jsonb_array_elements($1::pg_catalog.text::pg_catalog.jsonb) AS "#element"("#value")
    CROSS JOIN LATERAL ${typedRecord(name, '"#element"."#value"')} AS "#wanted"
    JOIN ${name} AS "#row" ON ${sameKey('"#row"', '"#wanted"', target.keyColumns, target)}
    ${members}
  ) AS r
  JOIN pg_catalog.pg_locks AS l ON l.locktype ${eq} 'transactionid' AND l.granted AND l.transactionid ${eq} r.locker
  WHERE EXISTS (SELECT FROM pg_catalog.pg_locks AS held
    WHERE held.virtualtransaction ${eq} l.virtualtransaction AND held.locktype ${eq} 'relation' AND held.granted AND held.relation ${eq} r.relation)`,
      '$2',
    ),
    values,
  }
}
