import type { Statement } from '../../core/driver.ts'
import { type ClaimLayout, columnOf, inStatus, isDue, type Waiting } from './claims.ts'
import { quoteIdentifier, tableText } from './identifier.ts'
import { typedRecord } from './rows.ts'

/** Whose turn it is. */
export interface TurnRequest {
  readonly column: string
  /** How many keys are wanted. */
  readonly most: number
  /** Keys that come after this one, and then those from the beginning; `undefined` begins there. */
  readonly after: string | undefined
}

/**
 * The next keys with rows to claim, in turn, found by jumping from key to key in the index and never
 * by reading all rows of one. No locks: for fair turns without a limit.
 */
export function nextTurns(waiting: Waiting, request: TurnRequest): Statement {
  return turns(waiting, request, 'true', 'NULL')
}

/**
 * The same for keys of which at most `limit` rows may be in flight. Takes the lock of each key it
 * gives, until the transaction ends: nobody else can claim rows of that key meanwhile, so what the
 * next statement counts is exact. Who cannot have a key's lock at once goes on with another key. A
 * key without room is passed over before its lock is tried; CASE, because AND has no order.
 */
export function lockTurns(layout: ClaimLayout, request: TurnRequest, limit: number): Statement {
  const table = tableText(layout.table)
  const key = `"#turn".${quoteIdentifier(request.column)}`
  const inFlight = `(SELECT pg_catalog.count(*) FROM (
      SELECT FROM ${table} AS "#row"
      WHERE ${inStatus(layout, layout.claimed)} AND ${columnOf(request.column)} = ${key} LIMIT ${limit}) AS "#some")`
  return turns(
    layout,
    request,
    `CASE WHEN ${inFlight} < ${limit} THEN pg_catalog.pg_try_advisory_xact_lock(${lockOf(layout, key)}) ELSE false END`,
    lockOf(layout, key),
  )
}

/** One lock for each table and key; by the table's oid, so that it does not matter how it is written. */
function lockOf({ table }: Waiting, key: string): string {
  const name = tableText(table).replaceAll("'", "''")
  return `pg_catalog.hashtextextended('${name}'::pg_catalog.regclass::oid::text || ':' || ${key}::text, 4242)`
}

function turns(
  waiting: Waiting,
  { column, most, after }: TurnRequest,
  condition: string,
  lock: string,
): Statement {
  const table = tableText(waiting.table)
  const turn = quoteIdentifier(column)
  const cursor = `(${typedRecord(table, '$2::text::jsonb')}).${turn}`
  // Jumps from one key to the next.
  const walk = (name: string, from: string, until: string): string => {
    const next = (more: string): string => `(
    SELECT ${columnOf(column)} FROM ${table} AS "#row"
    WHERE ${isDue(waiting)}${more}${until}
    ORDER BY 1 LIMIT 1)`
    return `${name}(${turn}) AS (
  SELECT ${next(from)}
  UNION ALL
  SELECT ${next(` AND ${columnOf(column)} > ${name}.${turn}`)} FROM ${name} WHERE ${name}.${turn} IS NOT NULL
)`
  }
  const last = '(SELECT "#cursor"."#last" FROM "#cursor")'
  const walks =
    after === undefined
      ? `${walk('"#ahead"', '', '')}`
      : `"#cursor"("#last") AS MATERIALIZED (SELECT ${cursor}),
${walk('"#ahead"', ` AND ${columnOf(column)} > ${last}`, '')},
${walk('"#behind"', '', ` AND ${columnOf(column)} <= ${last}`)}`
  const both = after === undefined ? `TABLE "#ahead"` : `TABLE "#ahead" UNION ALL TABLE "#behind"`
  return {
    text: `WITH RECURSIVE ${walks}
SELECT "#turn".${turn}::text AS "#key", (${lock})::text AS "#lock"
FROM (${both}) AS "#turn"
WHERE "#turn".${turn} IS NOT NULL AND ${condition}
LIMIT $1::text::int8`,
    values: [String(most), ...(after === undefined ? [] : [JSON.stringify({ [column]: after })])],
    columns: ['#key', '#lock'],
  }
}
