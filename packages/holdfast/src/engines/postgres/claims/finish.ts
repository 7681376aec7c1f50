import type * as OfRoom from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import {
  afterNow,
  atMost,
  columnOf,
  equals,
  inStatus,
  isServed,
  valueText,
  type Waiting,
} from './claims.ts'
import { textOf } from './texts.ts'
import { quoteIdentifier, quoteLiteral, tableText } from '../sql/identifier.ts'
import type { Compared } from '../sql/own-operators.ts'
import { sameKey, typedRecord } from '../rows/rows.ts'
import { eq, ge, jsonText, lt, minus } from '../sql/operators.ts'

export interface FinishLayout extends OfRoom.FinishLayout, Compared {}
interface TakeLayout extends OfRoom.TakeLayout, Compared {}

/** Whether the row has had all its attempts. */
function isSpent({ attempts, dead, maxAttempts }: FinishLayout): string {
  if (attempts === undefined || dead === undefined) return 'false'
  const most = typeof maxAttempts === 'number' ? String(maxAttempts) : columnOf(maxAttempts.column)
  return `coalesce(${columnOf(attempts)} ${ge} ${most}, false)`
}

function set(column: string | undefined, value: string): string[] {
  return column === undefined ? [] : [`${quoteIdentifier(column)} = ${value}`]
}

function deadOrPending(layout: FinishLayout): string[] {
  const { dead, pending, status } = layout
  const again = valueText(pending)
  if (dead === undefined || layout.attempts === undefined) return set(status, again)
  // The column itself is never reached: it gives the literals its type.
  return set(
    status,
    `CASE WHEN ${isSpent(layout)} THEN ${valueText(dead)} WHEN true THEN ${again} ELSE ${columnOf(status)} END`,
  )
}

function changes(layout: FinishLayout, verb: OfRoom.FinishVerb, leaseMs: string): string[] {
  const { token, leaseUntil, attempts } = layout
  switch (verb) {
    case 'heartbeat':
      return set(leaseUntil, afterNow(leaseMs))
    case 'complete':
      // The token stays: whoever asks again with it is told that it is done.
      return [
        ...set(layout.status, valueText(layout.done ?? null)),
        ...set(leaseUntil, 'NULL'),
        ...set(layout.finishedAt, 'pg_catalog.clock_timestamp()'),
      ]
    case 'release':
      return [
        ...set(layout.status, valueText(layout.pending)),
        ...set(token, 'NULL'),
        ...set(leaseUntil, 'NULL'),
        ...(attempts === undefined
          ? []
          : set(attempts, `greatest(coalesce(${columnOf(attempts)}, 0) ${minus} 1, 0)`)),
      ]
    case 'fail':
      return [
        ...deadOrPending(layout),
        ...set(token, 'NULL'),
        ...set(leaseUntil, 'NULL'),
        ...set(layout.error, `"#held"."#error"`),
        ...(layout.runAt === undefined
          ? []
          : set(
              layout.runAt,
              `CASE WHEN ${isSpent(layout)} THEN ${columnOf(layout.runAt)} ELSE ${afterNow('"#held"."#delay"')} END`,
            )),
      ]
  }
}

/** By the letters in an answer, one for each claim that was given, in its order. All else is lost. */
const states: Readonly<Record<string, OfRoom.FinishState>> = {
  k: 'kept',
  d: 'dead',
  b: 'busy',
}

/** Reads an answer about these claims. */
export function statesFrom(
  [row]: readonly Row[],
  claims: readonly unknown[],
): OfRoom.FinishState[] {
  const letters = row?.['answer'] as string | null | undefined
  return claims.map((_, at) => states[letters?.[at] ?? ''] ?? 'lost')
}

function given(layout: Waiting, count: number): string {
  const typed = layout.key.map((column) => `("#g"."#typed").${quoteIdentifier(column)}`)
  return `"#given" AS MATERIALIZED (
  SELECT "#g"."#at", ${typed.join(', ')}, "#g"."#value" ${jsonText} '#token' AS "#token",
         coalesce(("#g"."#value" ${jsonText} '#delay')::pg_catalog.int8, 0) AS "#delay", "#g"."#value" ${jsonText} '#error' AS "#error"
  FROM (
    SELECT "#element"."#at", "#element"."#value", ${typedRecord(tableText(layout.table), '"#element"."#value"')} AS "#typed"
    FROM pg_catalog.jsonb_array_elements($1::pg_catalog.text::pg_catalog.jsonb) WITH ORDINALITY AS "#element"("#value", "#at")
    LIMIT ${atMost(count)}
  ) AS "#g"${allHere(layout)}
)`
}

/** Raises if the server has not got the buckets of all that was given. */
function allHere({ shard }: Waiting): string {
  if (shard === undefined) return ''
  const bucket = quoteLiteral(shard.bucket)
  return `
  WHERE ${quoteIdentifier(shard.schema)}.here(ARRAY(
    SELECT DISTINCT ("#each"."#item" ${jsonText} ${bucket})::pg_catalog.int4
    FROM pg_catalog.jsonb_array_elements($1::pg_catalog.text::pg_catalog.jsonb) AS "#each"("#item")))`
}

/**
 * Locks the rows whose token fits in key order, as everybody here does, and changes them. Found by key:
 * CASE hides the status from the planner, which would walk all claimed rows and what is left of those
 * that were. A heartbeat skips a row that is locked: its owner is about to finish it, and all others must not wait for that.
 */
export function finishRows(
  layout: FinishLayout,
  verb: OfRoom.FinishVerb,
  items: readonly OfRoom.FinishItem[],
  leaseMs: number,
): Statement {
  const count = items.length
  return {
    ...textOf(layout, `${verb} ${atMost(count)}`, () => finishText(layout, verb, count)),
    // Only a heartbeat writes a lease; no other statement has a second parameter.
    values:
      verb === 'heartbeat'
        ? [itemsJson(layout, items), String(leaseMs)]
        : [itemsJson(layout, items)],
    columns: ['answer'],
  }
}

function finishText(layout: FinishLayout, verb: OfRoom.FinishVerb, count: number): string {
  const table = tableText(layout.table)
  const order = layout.key.toSorted().map(columnOf).join(', ')
  const fits = `${columnOf(layout.token)}::pg_catalog.text ${eq} "#given"."#token"`
  const keys = layout.key.map(columnOf).join(', ')
  const onKey = sameKey('"#row"', '"#given"', layout.key, layout)
  const onHeld = sameKey('"#row"', '"#held"', layout.key, layout)
  const state = verb === 'fail' ? `CASE WHEN ${isSpent(layout)} THEN 'd' ELSE 'k' END` : `'k'`
  const change =
    verb === 'complete' && layout.done === undefined
      ? `DELETE FROM ${table} AS "#row" USING "#held" WHERE ${onHeld} RETURNING "#held"."#at", ${state} AS "#state"`
      : `UPDATE ${table} AS "#row" SET ${changes(layout, verb, '$2::pg_catalog.text::pg_catalog.int8').join(', ')}
  FROM "#held" WHERE ${onHeld} RETURNING "#held"."#at", ${state} AS "#state"`
  return `WITH ${given(layout, count)}, "#held" AS MATERIALIZED (
  SELECT "#given"."#at", "#given"."#delay", "#given"."#error", ${keys}
  FROM "#given" JOIN ${table} AS "#row" ON ${onKey}
  WHERE CASE WHEN ${fits} AND ${equals(layout, layout.status, layout.claimed)} THEN true ELSE false END
  ORDER BY ${order}
  FOR NO KEY UPDATE OF "#row"${verb === 'heartbeat' ? ' SKIP LOCKED' : ''}
), "#changed" AS (
  ${change}
)
SELECT pg_catalog.string_agg(coalesce("#changed"."#state", ${otherwise(layout, verb, `${onKey} AND ${fits}`)}), '' ORDER BY "#given"."#at") AS answer
FROM "#given" LEFT JOIN "#changed" ON "#changed"."#at" ${eq} "#given"."#at"`
}

/** What a claim without a changed row is: lost, but for what the statement's snapshot still shows. */
function otherwise(layout: FinishLayout, verb: OfRoom.FinishVerb, mine: string): string {
  const seen = (status: OfRoom.ColumnValue, as: string): string =>
    `CASE WHEN EXISTS (SELECT FROM ${tableText(layout.table)} AS "#row"
    WHERE ${mine} AND ${equals(layout, layout.status, status)}) THEN '${as}' ELSE 'l' END`
  if (verb === 'heartbeat') return seen(layout.claimed, 'b')
  if (verb === 'complete' && layout.done !== undefined && layout.done !== null)
    return seen(layout.done, 'k')
  return `'l'`
}

/** Put together by hand: there may be hundreds, several times a second. */
function itemsJson({ key }: Waiting, items: readonly OfRoom.FinishItem[]): string {
  const names = key.map((column) => `${JSON.stringify(column)}:`)
  const texts = items.map((item) => {
    let text = `{"#token":${JSON.stringify(item.token)}`
    for (let at = 0; at < names.length; at += 1) {
      text += `,${names[at]}${JSON.stringify(item.key[at])}`
    }
    if (item.delayMs !== undefined) text += `,"#delay":${Math.round(item.delayMs)}`
    if (item.error !== undefined) text += `,"#error":${JSON.stringify(item.error)}`
    return `${text}}`
  })
  return `[${texts.join()}]`
}

/** Rows that this transaction has taken are done. They are locked, so nothing has to be fenced. */
export function finishTaken(layout: TakeLayout, keys: readonly (readonly string[])[]): Statement {
  const table = tableText(layout.table)
  const onGiven = sameKey('"#row"', '"#given"', layout.key, layout)
  const pending = equals(layout, layout.status, layout.pending)
  const change =
    layout.done === undefined
      ? `DELETE FROM ${table} AS "#row" USING "#given" WHERE ${onGiven} AND ${pending}`
      : `UPDATE ${table} AS "#row" SET ${[
          ...set(layout.status, valueText(layout.done ?? null)),
          ...set(layout.finishedAt, 'pg_catalog.clock_timestamp()'),
        ].join(', ')} FROM "#given" WHERE ${onGiven} AND ${pending}`
  return {
    text: `WITH ${given(layout, keys.length)}, "#changed" AS (
  ${change} RETURNING "#given"."#at"
)
SELECT pg_catalog.string_agg(CASE WHEN "#changed"."#at" IS NULL THEN 'l' ELSE 'k' END, '' ORDER BY "#given"."#at") AS answer
FROM "#given" LEFT JOIN "#changed" ON "#changed"."#at" ${eq} "#given"."#at"`,
    values: [
      itemsJson(
        layout,
        keys.map((key) => ({ key, token: '' })),
      ),
    ],
    columns: ['answer'],
  }
}

/**
 * Gives rows back whose lease is over, in the place they had: nothing that they are ordered by is
 * written. A row that somebody finishes right now is locked and left to them.
 */
export function recoverRows(layout: FinishLayout, limit: number): Statement {
  const table = tableText(layout.table)
  const keys = layout.key.map(columnOf).join(', ')
  const lease = columnOf(layout.leaseUntil)
  const set_ = [
    ...deadOrPending(layout),
    ...set(layout.token, 'NULL'),
    ...set(layout.leaseUntil, 'NULL'),
    ...set(layout.error, `'lease expired'`),
  ]
  return {
    text: `WITH "#stale" AS MATERIALIZED (
  SELECT ${keys} FROM ${table} AS "#row"
  WHERE ${inStatus(layout, layout.claimed)} AND ${lease} ${lt} pg_catalog.statement_timestamp()${isServed(layout)}
  ORDER BY ${lease}
  LIMIT $1::pg_catalog.text::pg_catalog.int8
  FOR NO KEY UPDATE OF "#row" SKIP LOCKED
), "#freed" AS (
  UPDATE ${table} AS "#row" SET ${set_.join(', ')}
  FROM "#stale" WHERE ${sameKey('"#row"', '"#stale"', layout.key, layout)}
  RETURNING ${isSpent(layout)} AS "#dead"
)
SELECT pg_catalog.count(*)::pg_catalog.text AS freed,
       (pg_catalog.count(*) FILTER (WHERE "#dead"))::pg_catalog.text AS dead
FROM "#freed"`,
    values: [String(limit)],
    columns: ['freed', 'dead'],
  }
}
