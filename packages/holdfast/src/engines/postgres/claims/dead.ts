import type * as OfRoom from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { columnOf, equals, inStatus, isServed, valueText } from './claims.ts'
import { quoteIdentifier, quoteLiteral, tableText } from '../sql/identifier.ts'
import { type Compared, comparing } from '../sql/own-operators.ts'
import { columnList, sameKey, typedRecord } from '../rows/rows.ts'
import { gt } from '../sql/operators.ts'

/** Statements about rows that had their last attempt. Nobody works on them, so there is no token to fit. */

export interface DeadLayout extends OfRoom.DeadLayout, Compared {}

function isDead(layout: DeadLayout): string {
  return `${inStatus(layout, layout.dead)}${isServed(layout)}`
}

function returned(layout: DeadLayout): string {
  const { key, attempts, error, listedBy, asJson, columns } = layout
  const place = listedBy.map((column) => `${quoteLiteral(column)}, ${columnOf(column)}`)
  return [
    ...key.map((column, at) => `${columnOf(column)}::pg_catalog.text AS "#key${at}"`),
    `${attempts === undefined ? 'NULL' : columnOf(attempts)}::pg_catalog.text AS "#attempts"`,
    `${error === undefined ? 'NULL' : columnOf(error)}::pg_catalog.text AS "#error"`,
    `pg_catalog.jsonb_build_object(${place.join(', ')})::pg_catalog.text AS "#place"`,
    ...(asJson
      ? [`pg_catalog.to_jsonb("#row")::pg_catalog.text AS "#json"`]
      : columnList('"#row"', columns)),
  ].join(', ')
}

/** The next dead rows behind a place, as `#place` told it. */
export function listDead(layout: DeadLayout, limit: number, after: string | undefined): Statement {
  const table = tableText(layout.table)
  const by = layout.listedBy.map(columnOf).join(', ')
  const place = layout.listedBy.map((column) => `("#after"."#typed").${quoteIdentifier(column)}`)
  // The place is worked out once, not for each row.
  const begin =
    after === undefined
      ? ''
      : `WITH "#after" AS MATERIALIZED (SELECT ${typedRecord(table, '$2::pg_catalog.text::pg_catalog.jsonb')} AS "#typed")
`
  const beyond = after === undefined ? '' : ` AND ${isBehind(layout, place)}`
  return {
    text: `${begin}SELECT ${returned(layout)} FROM ${table} AS "#row"
WHERE ${isDead(layout)}${beyond} ORDER BY ${by} LIMIT $1::pg_catalog.text::pg_catalog.int8`,
    values: [String(limit), ...(after === undefined ? [] : [after])],
  }
}

/** A row of columns behind a place. Where types have operators of their own, column by column. */
function isBehind(layout: DeadLayout, place: readonly string[]): string {
  const { listedBy, operators } = layout
  const at = place.map((each) => `(SELECT ${each} FROM "#after")`)
  if (operators === undefined) {
    return `(${listedBy.map(columnOf).join(', ')}) ${gt} (${at.join(', ')})`
  }
  const terms = listedBy.map((column, n) =>
    [...listedBy.slice(0, n), column]
      .map((each, m) => `${columnOf(each)} ${comparing(layout, each, m < n ? '=' : '>')} ${at[m]}`)
      .join(' AND '),
  )
  return `(${terms.join(' OR ')})`
}

function given({ table, key }: DeadLayout): string {
  const typed = key.map((column) => `("#g"."#typed").${quoteIdentifier(column)}`)
  return `"#given" AS MATERIALIZED (
  SELECT "#g"."#at", ${typed.join(', ')}
  FROM (
    SELECT "#element"."#at", ${typedRecord(tableText(table), '"#element"."#value"')} AS "#typed"
    FROM pg_catalog.jsonb_array_elements($1::pg_catalog.text::pg_catalog.jsonb) WITH ORDINALITY AS "#element"("#value", "#at")
  ) AS "#g"
)`
}

function keysJson({ key }: DeadLayout, keys: readonly (readonly string[])[]): string {
  return JSON.stringify(
    keys.map((values) => Object.fromEntries(key.map((column, at) => [column, values[at]]))),
  )
}

/** One dead row by its key. */
export function findDead(layout: DeadLayout, key: readonly string[]): Statement {
  return {
    text: `WITH ${given(layout)} SELECT ${returned(layout)}
FROM "#given" JOIN ${tableText(layout.table)} AS "#row" ON ${sameKey('"#row"', '"#given"', layout.key, layout)}
WHERE ${isDead(layout)}`,
    values: [keysJson(layout, [key])],
  }
}

/** Makes dead rows pending again, with all their attempts before them, or deletes them. Tells the places done. */
export function changeDead(
  layout: DeadLayout,
  verb: OfRoom.DeadVerb,
  keys: readonly (readonly string[])[],
): Statement {
  const table = tableText(layout.table)
  const onHeld = sameKey('"#row"', '"#held"', layout.key, layout)
  const { status, pending, attempts, token, leaseUntil, runAt } = layout
  const set = [
    `${quoteIdentifier(status)} = ${valueText(pending)}`,
    `${quoteIdentifier(token)} = NULL`,
    `${quoteIdentifier(leaseUntil)} = NULL`,
    ...(attempts === undefined ? [] : [`${quoteIdentifier(attempts)} = 0`]),
    // Its own place, so that rows that are retried together keep their order.
    ...(runAt === undefined
      ? []
      : [`${quoteIdentifier(runAt)} = least(${columnOf(runAt)}, pg_catalog.clock_timestamp())`]),
  ]
  const change =
    verb === 'delete'
      ? `DELETE FROM ${table} AS "#row" USING "#held" WHERE ${onHeld}`
      : `UPDATE ${table} AS "#row" SET ${set.join(', ')} FROM "#held" WHERE ${onHeld}`
  const keyColumns = layout.key.map(columnOf).join(', ')
  return {
    text: `WITH ${given(layout)}, "#held" AS MATERIALIZED (
  SELECT "#given"."#at", ${keyColumns}
  FROM "#given" JOIN ${table} AS "#row" ON ${sameKey('"#row"', '"#given"', layout.key, layout)}
  WHERE ${equals(layout, status, layout.dead)} AND ${isDead(layout)}
  ORDER BY ${layout.key.toSorted().map(columnOf).join(', ')}
  FOR UPDATE OF "#row"
), "#changed" AS (
  ${change} RETURNING "#held"."#at"
)
SELECT "#changed"."#at"::pg_catalog.text AS at FROM "#changed"`,
    values: [keysJson(layout, keys)],
    columns: ['at'],
  }
}

export function deadFrom(layout: DeadLayout, rows: readonly Row[]): OfRoom.FoundDead[] {
  return rows.map((found) => {
    const own = Object.entries(found).filter(([name]) => !name.startsWith('#'))
    const { '#attempts': attempts, '#error': error, '#json': json } = found
    return {
      key: layout.key.map((_, at) => String(found[`#key${at}`])),
      attempts: typeof attempts === 'string' ? Number(attempts) : undefined,
      error: typeof error === 'string' ? error : undefined,
      place: String(found['#place']),
      row: layout.asJson ? (JSON.parse(String(json)) as Row) : Object.fromEntries(own),
    }
  })
}
