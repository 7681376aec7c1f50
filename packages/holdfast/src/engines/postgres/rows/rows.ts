import type { Row, Statement } from '../../../core/driver.ts'
import type { TableName } from '../../../core/table-name.ts'
import { quoteIdentifier, tableText } from '../sql/identifier.ts'
import type { LockMode } from '../../../core/locks/wanted-lock.ts'
import type { Columns, RowAnswer, RowStrength, RowTarget } from '../../../rows/engine.ts'
import { rowsToken } from '../locks/locks.ts'
import { type Compared, comparing } from '../sql/own-operators.ts'
import { isLimitedHere, restoredTimeouts } from '../tx/wait-limit.ts'
import { isTrue } from '../../../core/is-true.ts'
import { cat, eq, filled, gt, jsonAt } from '../sql/operators.ts'

/**
 * Statements about rows of the caller's tables. Our own names (CTEs, aliases, columns) start with
 * `#` and so meet none of the caller's; a CTE called `wanted` would hide a table called `wanted`.
 *
 * Values travel as one JSON text and `jsonb_populate_record` gives them the types of the table's
 * columns, so that comparisons use its indexes. The record type is taken from the table itself and
 * not by name: `NULL::path` would be pg_catalog's type, not the caller's table.
 */

const strengthClause: Readonly<Record<RowStrength, string>> = {
  update: 'FOR UPDATE',
  'no key update': 'FOR NO KEY UPDATE',
  share: 'FOR SHARE',
  'key share': 'FOR KEY SHARE',
}

/** Whether a row that is locked by others is waited for, left out, or an error. */
export type RowPatience = 'wait' | 'skip' | 'fail'

const patienceClause: Readonly<Record<RowPatience, string>> = {
  wait: '',
  skip: ' SKIP LOCKED',
  fail: ' NOWAIT',
}

/** Rows by key, with the operators that their columns are compared by. */
export interface ComparedTarget extends RowTarget, Compared {}

export interface RowLockRequest {
  readonly target: ComparedTarget
  /** A JSON array of objects, one per key, with the key columns as text. */
  readonly keysJson: string
  readonly keyCount: number
  readonly strength: RowStrength
  readonly patience: RowPatience
  readonly columns: Columns
  /** Its value comes back as text, next to the row. */
  readonly versionColumn: string | undefined
  /** Nobody is sure that `limitWait` came before, in the same transaction: without it nothing is locked. */
  readonly unsure: boolean
}

const marker = "pg_catalog.current_setting('holdfast.held', true)"

/** What others may do with the rows meanwhile, as the order watch tells them apart. */
export function modeOf(strength: RowStrength): LockMode {
  return strength === 'share' || strength === 'key share' ? 'shared' : 'exclusive'
}

/** The marker with the token of the table's rows added to it, if `some` rows were locked. */
export function markerWithRows(table: TableName, mode: LockMode, some: string): string {
  const token = rowsToken(tableText(table), mode)
  const held = filled(marker, "','")
  return `pg_catalog.set_config('holdfast.held', ${held} ${cat} CASE WHEN ${some}
    AND pg_catalog.strpos(${held}, ',${token},') ${eq} 0 THEN '${token},' ELSE '' END, true)`
}

/** A JSON object as a record of the table's own type. */
export function typedRecord(table: string, json: string): string {
  return `pg_catalog.jsonb_populate_record((SELECT "#row" FROM ${table} AS "#row" WHERE false), ${json})`
}

export function columnList(of: string, columns: Columns): readonly string[] {
  if (columns === undefined) return [`${of}.*`]
  return columns.map((column) => `${of}.${quoteIdentifier(column)}`)
}

/** Equality of the key columns, as their unique index has it. */
export function sameKey(
  left: string,
  right: string,
  columns: readonly string[],
  compared: Pick<Compared, 'operators'>,
): string {
  return columns
    .map(
      (column) =>
        `${left}.${quoteIdentifier(column)} ${comparing(compared, column, '=')} ${right}.${quoteIdentifier(column)}`,
    )
    .join(' AND ')
}

/**
 * The keys, typed, equal ones merged into one. OFFSET 0 keeps the record from being built
 * once per column, and the planner at an estimate of many keys instead of one.
 */
function wantedRows({ table, keyColumns }: ComparedTarget, json: string): string {
  const typed = keyColumns.map((column) => `("#given"."#typed").${quoteIdentifier(column)}`)
  return `
  SELECT pg_catalog.min("#given"."#at")::pg_catalog.int4 AS "#first",
         pg_catalog.string_agg("#given"."#at"::pg_catalog.text, ',') AS "#positions", ${typed.join(', ')}
  FROM (
    SELECT "#element"."#at", ${typedRecord(tableText(table), '"#element"."#value"')} AS "#typed"
    FROM pg_catalog.jsonb_array_elements(${json}::pg_catalog.text::pg_catalog.jsonb) WITH ORDINALITY AS "#element"("#value", "#at")
    OFFSET 0
  ) AS "#given"
  GROUP BY ${typed.join(', ')}`
}

/** Reads keys as values of the key columns. By the table's type: to plan a look at the table, its policies are run. */
export function readKeys({ table, keyColumns }: ComparedTarget, keysJson: string): Statement {
  const typed = `pg_catalog.jsonb_populate_record(NULL::${tableText(table)}, "#element"."#value")`
  const keys = keyColumns.map(
    (column) => `("#given"."#typed").${quoteIdentifier(column)}::pg_catalog.text`,
  )
  return {
    text: `SELECT ${keys.join(` ${cat} `)} AS key FROM (
      SELECT ${typed} AS "#typed"
      FROM pg_catalog.jsonb_array_elements($1::pg_catalog.text::pg_catalog.jsonb) AS "#element"("#value")
      OFFSET 0
    ) AS "#given"`,
    values: [keysJson],
  }
}

/**
 * Locks the rows one after the other in the order of their keys: LockRows stands above Sort. The
 * key columns are ordered by name, so that `['a', 'b']` and `['b', 'a']` lock in the same order.
 * A row that changed while it was waited for comes back as it is now. Around that, one statement
 * extends the marker and restores the timeouts; both read the locked rows, so they come after.
 */
export function rowLockStatement(request: RowLockRequest): Statement {
  const text =
    request.keyCount === 1 && request.patience !== 'skip' ? oneRow(request) : manyRows(request)
  return { text, values: [request.keysJson] }
}

function manyRows(request: RowLockRequest): string {
  const { table: name, keyColumns } = request.target
  const table = tableText(name)
  const order = keyColumns.toSorted().map((column) => `"#row".${quoteIdentifier(column)}`)
  const isKey = sameKey('"#row"', '"#wanted"', keyColumns, request.target)
  const there = `CASE WHEN "#locked"."#key" IS NULL
         THEN EXISTS (SELECT FROM ${table} AS "#row" WHERE ${isKey}) ELSE true END::pg_catalog.text AS "#there",`
  return `
WITH "#wanted" AS MATERIALIZED (${wantedRows(request.target, '$1')}
), "#locked" AS MATERIALIZED (
  SELECT "#wanted"."#first"::pg_catalog.text AS "#key", ${lockedColumns(request)}
  FROM "#wanted" JOIN ${table} AS "#row" ON ${isKey}${onlyLimited(request)}
  ORDER BY ${order.join(', ')}
  ${lockClause(request)}
), "#done" AS MATERIALIZED (${afterwards(request)}
)
SELECT "#wanted"."#positions" AS "#wanted", ${request.patience === 'skip' ? there : ''}
       (${isLimitedHere})::pg_catalog.text AS "#limited", "#done"."#held" AS "#marked", "#locked".*
FROM "#done" CROSS JOIN "#wanted" LEFT JOIN "#locked" ON "#locked"."#key" ${eq} "#wanted"."#first"::pg_catalog.text
ORDER BY "#wanted"."#first"`
}

/** The same for one key, which is most calls, at half the planning. */
function oneRow(request: RowLockRequest): string {
  const table = tableText(request.target.table)
  return `
WITH "#locked" AS MATERIALIZED (
  SELECT '1' AS "#key", ${lockedColumns(request)}
  FROM ${typedRecord(table, `$1::pg_catalog.text::pg_catalog.jsonb ${jsonAt} 0`)} AS "#wanted"
  JOIN ${table} AS "#row" ON ${sameKey('"#row"', '"#wanted"', request.target.keyColumns, request.target)}${onlyLimited(request)}
  ${lockClause(request)}
), "#done" AS MATERIALIZED (${afterwards(request)}
)
SELECT '1' AS "#wanted", (${isLimitedHere})::pg_catalog.text AS "#limited", "#done"."#held" AS "#marked", "#locked".*
FROM "#done" LEFT JOIN "#locked" ON true`
}

function lockedColumns({ versionColumn, columns }: RowLockRequest): string {
  const version = versionColumn === undefined ? 'NULL' : `"#row".${quoteIdentifier(versionColumn)}`
  return [`${version}::pg_catalog.text AS "#version"`, ...columnList('"#row"', columns)].join(', ')
}

function lockClause({ strength, patience }: RowLockRequest): string {
  return `${strengthClause[strength]} OF "#row"${patienceClause[patience]}`
}

/** Outside a transaction no limit is in force, and the wait would be without end. */
function onlyLimited({ unsure }: RowLockRequest): string {
  return unsure ? ` WHERE ${isLimitedHere}` : ''
}

function afterwards({ target, strength }: RowLockRequest): string {
  const restored = restoredTimeouts.map((column, at) => `${column} AS "#restored${at}"`)
  return `
  SELECT ${markerWithRows(target.table, modeOf(strength), `pg_catalog.count(*) ${gt} 0`)} AS "#held",
         ${restored.join(',\n         ')}
  FROM "#locked"`
}

/** Reads one row of `rowLockStatement`. */
export function rowAnswer(answer: Row): RowAnswer {
  const {
    '#wanted': wanted,
    '#there': there,
    '#limited': __,
    '#marked': _,
    '#key': key,
    '#version': version,
    ...row
  } = answer
  return {
    positions: String(wanted)
      .split(',')
      .map((at) => Number(at) - 1),
    locked: key !== null,
    there: isTrue(there),
    version: typeof version === 'string' ? version : undefined,
    row,
  }
}
