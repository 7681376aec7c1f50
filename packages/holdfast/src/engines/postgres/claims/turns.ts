import type { KeyLimits, RateLimit } from '../../../claims/engine.ts'
import type { Statement } from '../../../core/driver.ts'
import {
  type ClaimLayout,
  columnOf,
  inStatus,
  isDue,
  rateRoom,
  type Turns,
  type Waiting,
} from './claims.ts'
import { quoteIdentifier, quoteLiteral, tableText } from '../sql/identifier.ts'
import { comparing } from '../sql/own-operators.ts'
import { typedRecord } from '../rows/rows.ts'
import { cat, gt, lt } from '../sql/operators.ts'

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
 * The same for keys that have a limit. Takes the lock of each key it gives, until the transaction ends:
 * nobody else can claim rows of that key meanwhile, so what the next statement counts is exact. Who cannot
 * have a key's lock at once goes on with another key. A key without room is passed over before its lock
 * is tried; CASE, because AND has no order.
 */
export function lockTurns(
  layout: ClaimLayout,
  request: TurnRequest,
  { limit, rate }: Partial<KeyLimits>,
): Statement {
  const table = tableText(layout.table)
  const key = `"#turn".${quoteIdentifier(request.column)}`
  const inFlight = `(SELECT pg_catalog.count(*) FROM (
      SELECT FROM ${table} AS "#row"
      WHERE ${inStatus(layout, layout.claimed)} AND ${columnOf(request.column)} ${comparing(layout, request.column, '=')} ${key} LIMIT ${limit}) AS "#some")`
  const room = [
    ...(limit === undefined ? [] : [`${inFlight} ${lt} ${limit}`]),
    ...(rate === undefined ? [] : [`${rateRoom(rate, key)} ${gt} 0`]),
  ].join(' AND ')
  return turns(
    layout,
    request,
    `CASE WHEN ${room} THEN pg_catalog.pg_try_advisory_xact_lock(${lockOf(layout, key)}) ELSE false END`,
    lockOf(layout, key),
  )
}

/** Rows for each key, one more for the first ones where it does not divide. */
export function turnsOf(
  column: string,
  keys: readonly string[],
  rows: number,
  { limit, rate }: Partial<KeyLimits>,
): Turns {
  const [each, over] = [Math.floor(rows / keys.length), rows % keys.length]
  const shares = keys.map((key, at) => ({ [column]: key, '#share': each + (at < over ? 1 : 0) }))
  return { column, limit, rate, keysJson: JSON.stringify(shares), count: keys.length }
}

/** Writes down what was claimed of each key; see `sql/app/note_claims.sql`. */
export function noteClaims(
  { schema, name, perMs }: RateLimit,
  claimed: Readonly<Record<string, number>>,
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.note_claims($1::pg_catalog.text, $2::pg_catalog.text::pg_catalog.jsonb, $3::pg_catalog.text::pg_catalog.int8) AS answer`,
    values: [name, JSON.stringify(claimed), String(perMs)],
    columns: ['answer'],
  }
}

/** One lock for each table and key; by the table's oid, so that it does not matter how it is written. */
function lockOf({ table }: Waiting, key: string): string {
  const name = quoteLiteral(tableText(table))
  return `pg_catalog.hashtextextended(${name}::pg_catalog.regclass::pg_catalog.oid::pg_catalog.text ${cat} ':' ${cat} ${key}::pg_catalog.text, 4242)`
}

function turns(
  waiting: Waiting,
  { column, most, after }: TurnRequest,
  condition: string,
  lock: string,
): Statement {
  const table = tableText(waiting.table)
  const turn = quoteIdentifier(column)
  const cursor = `(${typedRecord(table, '$2::pg_catalog.text::pg_catalog.jsonb')}).${turn}`
  const beyond = comparing(waiting, column, '>')
  // Jumps from one key to the next.
  const walk = (name: string, from: string, until: string): string => {
    const next = (more: string): string => `(
    SELECT ${columnOf(column)} FROM ${table} AS "#row"
    WHERE ${isDue(waiting)}${more}${until}
    ORDER BY 1 LIMIT 1)`
    return `${name}(${turn}) AS (
  SELECT ${next(from)}
  UNION ALL
  SELECT ${next(` AND ${columnOf(column)} ${beyond} ${name}.${turn}`)} FROM ${name} WHERE ${name}.${turn} IS NOT NULL
)`
  }
  const last = '(SELECT "#cursor"."#last" FROM "#cursor")'
  const walks =
    after === undefined
      ? `${walk('"#ahead"', '', '')}`
      : `"#cursor"("#last") AS MATERIALIZED (SELECT ${cursor}),
${walk('"#ahead"', ` AND ${columnOf(column)} ${beyond} ${last}`, '')},
${walk('"#behind"', '', ` AND ${columnOf(column)} ${comparing(waiting, column, '<=')} ${last}`)}`
  const both = after === undefined ? `TABLE "#ahead"` : `TABLE "#ahead" UNION ALL TABLE "#behind"`
  return {
    text: `WITH RECURSIVE ${walks}
SELECT "#turn".${turn}::pg_catalog.text AS "#key", (${lock})::pg_catalog.text AS "#lock"
FROM (${both}) AS "#turn"
WHERE "#turn".${turn} IS NOT NULL AND ${condition}
LIMIT $1::pg_catalog.text::pg_catalog.int8`,
    values: [String(most), ...(after === undefined ? [] : [JSON.stringify({ [column]: after })])],
    columns: ['#key', '#lock'],
  }
}
