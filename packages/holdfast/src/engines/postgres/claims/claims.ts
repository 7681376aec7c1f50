import type * as OfRoom from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { quoteIdentifier, quoteLiteral, tableText } from '../sql/identifier.ts'
import { isMarked } from '../tx/join-marker.ts'
import { type Compared, comparing } from '../sql/own-operators.ts'
import { textOf } from './texts.ts'
import { columnList, sameKey, typedRecord } from '../rows/rows.ts'
import { isTrue } from '../../../core/is-true.ts'
import { eq, jsonText, le, minus, plus, times } from '../sql/operators.ts'

/**
 * Statements that claim rows of a table of the caller's. Names of our own start with `#`, so that
 * they hide none of the caller's. Status values and the fixed conditions are literals and not
 * parameters: only then does the planner see that a partial index has them in its predicate. LIMITs
 * say how many rows there are where it could only guess, and a wrong guess reads the whole table.
 */

export interface Waiting extends OfRoom.Waiting, Compared {}
export interface ClaimLayout extends OfRoom.ClaimLayout, Compared {}

/** A value without a type: it becomes what it is compared with. */
export function valueText(value: OfRoom.ColumnValue): string {
  return value === null ? 'NULL' : quoteLiteral(String(value))
}

/** How many rows of a key the rate leaves right now. */
export function rateRoom({ schema, name, most, perMs }: OfRoom.RateLimit, key: string): string {
  return `${quoteIdentifier(schema)}.rate_room(${quoteLiteral(name)}, ${key}::pg_catalog.text, ${most}, ${perMs})`
}

/** Turns of keys: which ones, and how many rows of each. */
export interface Turns {
  /** The column that says whose turn it is. */
  readonly column: string
  /** Most rows of one key in flight at a time; counted only by a layout with leases. */
  readonly limit: number | undefined
  /** Most rows of one key that are claimed in a span of time. */
  readonly rate: OfRoom.RateLimit | undefined
  /** A JSON array of `{ [column]: key, "#share": rows }`. */
  readonly keysJson: string
  /** How many keys these are. */
  readonly count: number
}

/** What is asked for by one claim. */
export interface ClaimRequest {
  readonly limit: number
  /** In the caller's transaction, whose isolation level is looked at in the same statement. */
  readonly joined: boolean
  readonly turns: Turns | undefined
}

const row = '"#row"'

export function columnOf(column: string): string {
  return `${row}.${quoteIdentifier(column)}`
}

/** `IS NULL` is what SQL calls being equal to null. */
export function equals(
  compared: Pick<Compared, 'operators'>,
  column: string,
  value: OfRoom.ColumnValue,
): string {
  const left = columnOf(column)
  return value === null
    ? `${left} IS NULL`
    : `${left} ${comparing(compared, column, '=')} ${valueText(value)}`
}

/** The conditions of our rows with this status. */
export function inStatus(waiting: Waiting, value: OfRoom.ColumnValue): string {
  return [
    equals(waiting, waiting.status, value),
    ...waiting.where.map(([column, fixed]) => equals(waiting, column, fixed)),
  ].join(' AND ')
}

/** Not those that another primary has, or is about to have. */
export function isServed({ shard }: Waiting): string {
  if (shard === undefined) return ''
  return ` AND ${quoteIdentifier(shard.schema)}.serves(${columnOf(shard.bucket)})`
}

/** The rows that may be claimed now. `statement_timestamp()`, because an index can be asked for it. */
export function isDue(waiting: Waiting): string {
  const { runAt } = waiting
  const due =
    runAt === undefined ? '' : ` AND ${columnOf(runAt)} ${le} pg_catalog.statement_timestamp()`
  return `${inStatus(waiting, waiting.pending)}${due}${isServed(waiting)}`
}

/** Order of the rows as SQL text. */
function orderOf({ priority, order }: Waiting): string {
  const first =
    priority === undefined
      ? []
      : [`${columnOf(priority.column)}${priority.first === 'largest' ? ' DESC' : ''}`]
  return [...first, ...order.map(columnOf)].join(', ')
}

/** At REPEATABLE READ and above the rows that others have changed would be errors, not skipped. */
const readCommitted = `pg_catalog.current_setting('transaction_isolation') ${eq} 'read committed'`

/**
 * The next rows, locked, those that others have locked left out. FOR NO KEY UPDATE does not meet the
 * FOR KEY SHARE of somebody who inserts a row that refers to ours.
 */
function picked(waiting: Waiting, request: ClaimRequest, wanted: string): string {
  const { turns } = request
  const guard = request.joined ? ` AND ${readCommitted}` : ''
  const table = tableText(waiting.table)
  const pick = (more: string, order: string, limit: string): string => `
    SELECT ${wanted} FROM ${table} AS ${row}
    WHERE ${isDue(waiting)}${guard}${more}
    ORDER BY ${order}
    LIMIT ${limit}
    FOR NO KEY UPDATE OF ${row} SKIP LOCKED`
  if (turns !== undefined) {
    const turn = quoteIdentifier(turns.column)
    const more = ` AND ${columnOf(turns.column)} ${comparing(waiting, turns.column, '=')} "#turn".${turn}`
    return `
  SELECT "#mine".* FROM "#turn" CROSS JOIN LATERAL (${pick(more, orderOf(waiting), shareOf(waiting, turns))}
  ) AS "#mine"
  LIMIT ${atMost(request.limit)}`
  }
  const { priority } = waiting
  const most = atMost(request.limit)
  if (priority === undefined) return first(pick('', orderOf(waiting), most))
  // Each priority by itself: its rows end at the first one in the future, however many follow. The
  // loop goes through the priorities in order, and stops as soon as there is enough.
  const level = quoteIdentifier(priority.column)
  const more = ` AND ${columnOf(priority.column)} ${comparing(waiting, priority.column, '=')} "#level".${level}`
  const inOrder = waiting.order.map(columnOf).join(', ')
  return first(`
    SELECT "#mine".* FROM "#level" CROSS JOIN LATERAL (${pick(more, inOrder, most)}
    ) AS "#mine"
    WHERE "#level".${level} IS NOT NULL
    LIMIT ${most}`)
}

/**
 * As many as asked for. Rows are locked one by one as they are pulled, so none is locked beyond that.
 * The limit inside is one of a few that stand in the text: a plan that is made for any number of rows
 * would otherwise be one for a tenth of the table.
 */
function first(some: string): string {
  return `
  SELECT "#some".* FROM (${some}
  ) AS "#some"
  LIMIT $1::pg_catalog.text::pg_catalog.int8`
}

/** The next power of two: few texts for all sizes. */
export function atMost(count: number): string {
  return String(2 ** Math.ceil(Math.log2(count)))
}

/** Room that a key has left. Counted under the key's lock, in a statement that began after it. */
function shareOf(waiting: Waiting, { column, limit, rate }: Turns): string {
  const share = '"#turn"."#share"'
  const key = `"#turn".${quoteIdentifier(column)}`
  const rooms = rate === undefined ? [share] : [share, rateRoom(rate, key)]
  if (limit !== undefined && isClaimLayout(waiting)) {
    const claimed = `${inStatus(waiting, waiting.claimed)} AND ${columnOf(column)} ${comparing(waiting, column, '=')} ${key}`
    rooms.push(`${limit} ${minus} (
      SELECT pg_catalog.count(*) FROM ${tableText(waiting.table)} AS ${row} WHERE ${claimed})`)
  }
  return rooms.length === 1 ? share : `greatest(0, least(${rooms.join(', ')}))`
}

function isClaimLayout(waiting: Waiting): waiting is ClaimLayout {
  return 'claimed' in waiting
}

/** What has to be there before rows can be picked. */
function before(waiting: Waiting, { turns }: ClaimRequest): string {
  const table = tableText(waiting.table)
  if (turns !== undefined) {
    const turn = quoteIdentifier(turns.column)
    return `"#turn" AS MATERIALIZED (
  SELECT ("#given"."#typed").${turn} AS ${turn}, "#given"."#share"
  FROM (
    SELECT ${typedRecord(table, '"#element"."#value"')} AS "#typed",
           ("#element"."#value" ${jsonText} '#share')::pg_catalog.int8 AS "#share"
    FROM pg_catalog.jsonb_array_elements($1::pg_catalog.text::pg_catalog.jsonb) WITH ORDINALITY AS "#element"("#value", "#at")
    ORDER BY "#element"."#at"
    LIMIT ${atMost(turns.count)}
  ) AS "#given"
), `
  }
  const { priority } = waiting
  if (priority === undefined) return ''
  const level = quoteIdentifier(priority.column)
  const next = (more: string): string => `(
    SELECT ${columnOf(priority.column)} FROM ${table} AS ${row}
    WHERE ${inStatus(waiting, waiting.pending)}${more}
    ORDER BY 1${priority.first === 'largest' ? ' DESC' : ''} LIMIT 1)`
  const beyond = ` AND ${columnOf(priority.column)} ${comparing(waiting, priority.column, priority.first === 'largest' ? '<' : '>')} "#level".${level}`
  return `"#level"(${level}) AS (
  SELECT ${next('')}
  UNION ALL
  SELECT ${next(beyond)} FROM "#level" WHERE "#level".${level} IS NOT NULL
), `
}

/** Everything before the answer; the first value is the limit or the turns. */
function opening(waiting: Waiting, request: ClaimRequest, wanted: string): string {
  return `WITH RECURSIVE ${before(waiting, request)}"#picked" AS MATERIALIZED (${picked(waiting, request, wanted)}
)`
}

/**
 * The picked keys with their places, as arrays that were collected first: the planner takes them for
 * few and looks the rows up by key, where for a CTE of some hundred it would read the whole table.
 */
function placed(key: readonly string[]): string {
  const names = key.map(quoteIdentifier)
  const arrays = names.map(
    (name) => `pg_catalog.unnest(ARRAY(SELECT "#picked".${name} FROM "#picked"))`,
  )
  return `ROWS FROM (${arrays.join(', ')}) WITH ORDINALITY AS "#placed"(${names.join(', ')}, "#at")`
}

function returnedColumns({ columns, texts }: Waiting): readonly string[] {
  if (texts === undefined) return columnList(row, columns)
  return texts.map((column) => `${columnOf(column)}::pg_catalog.text AS ${quoteIdentifier(column)}`)
}

function keyTexts(key: readonly string[]): string {
  return key.map((column, at) => `${columnOf(column)}::pg_catalog.text AS "#key${at}"`).join(', ')
}

/** The rows; if joined, at least one line that says what was found out about the transaction. */
function answer(from: string, { joined }: ClaimRequest): string {
  if (!joined) return `SELECT * FROM ${from} ORDER BY "#at"::pg_catalog.int8`
  return `SELECT (${readCommitted})::pg_catalog.text AS "#fresh", ${from}.*
FROM (SELECT 1) AS "#one" LEFT JOIN ${from} ON true ORDER BY "#at"::pg_catalog.int8`
}

/** Locks the rows and writes the lease into them. The token is what fences everything later. */
export function claimRows(
  layout: ClaimLayout,
  request: ClaimRequest,
  lease: { readonly token: string; readonly ms: number; readonly holder: string },
): Statement {
  const { holder } = layout
  return {
    ...textOf(layout, `claim ${variantOf(request)}`, () => claimText(layout, request)),
    values: [
      request.turns?.keysJson ?? String(request.limit),
      lease.token,
      String(lease.ms),
      ...(holder === undefined ? [] : [lease.holder]),
    ],
  }
}

/** All that changes a text over the same table. */
function variantOf({ limit, joined, turns }: ClaimRequest): string {
  return `${atMost(limit)} ${joined} ${turns === undefined ? '' : atMost(turns.count)}`
}

function claimText(layout: ClaimLayout, request: ClaimRequest): string {
  const { attempts, holder } = layout
  const set = [
    `${quoteIdentifier(layout.status)} = ${valueText(layout.claimed)}`,
    `${quoteIdentifier(layout.token)} = $2::pg_catalog.text::pg_catalog.uuid`,
    `${quoteIdentifier(layout.leaseUntil)} = ${afterNow('$3::pg_catalog.text::pg_catalog.int8')}`,
    ...(attempts === undefined
      ? []
      : [`${quoteIdentifier(attempts)} = coalesce(${columnOf(attempts)}, 0) ${plus} 1`]),
    ...(holder === undefined ? [] : [`${quoteIdentifier(holder)} = $4::pg_catalog.text`]),
  ]
  const returned = [
    '"#placed"."#at"::pg_catalog.text AS "#at"',
    keyTexts(layout.key),
    `${attempts === undefined ? 'NULL' : columnOf(attempts)}::pg_catalog.text AS "#attempt"`,
    ...(request.turns?.rate === undefined
      ? []
      : [`${columnOf(request.turns.column)}::pg_catalog.text AS "#turn"`]),
    ...returnedColumns(layout),
  ]
  return `${opening(layout, request, layout.key.map(columnOf).join(', '))}, "#claimed" AS (
  UPDATE ${tableText(layout.table)} AS ${row} SET ${set.join(', ')}
  FROM ${placed(layout.key)} WHERE ${sameKey(row, '"#placed"', layout.key, layout)}
  RETURNING ${returned.join(', ')}
)
${answer('"#claimed"', request)}`
}

/** Locks the rows for as long as the caller's transaction lasts, and writes nothing. */
export function takeRows(waiting: Waiting, request: ClaimRequest): Statement {
  return {
    ...textOf(waiting, `take ${variantOf(request)}`, () => takeText(waiting, request)),
    values: [request.turns?.keysJson ?? String(request.limit)],
  }
}

function takeText(waiting: Waiting, request: ClaimRequest): string {
  // As they are under the lock, and not as the statement first saw them.
  const wanted = [keyTexts(waiting.key), ...returnedColumns(waiting)].join(', ')
  return `${opening(waiting, request, wanted)}, "#taken" AS MATERIALIZED (
  SELECT "#picked".*, (pg_catalog.row_number() OVER ())::pg_catalog.text AS "#at" FROM "#picked"
)
${answer('"#taken"', request)}`
}

/** A moment so many milliseconds from now, by the server's clock. */
export function afterNow(ms: string): string {
  return `pg_catalog.clock_timestamp() ${plus} (${ms} ${times} interval '1 millisecond')`
}

/** Whether the caller's transaction sees what others have committed; told if it was asked for. */
export function seesLatest([first]: readonly Row[]): boolean {
  return isTrue(first?.['#fresh'])
}

/** How many rows of each key were claimed; told where there is a rate. */
export function claimedPerKey(rows: readonly Row[]): Readonly<Record<string, number>> {
  const counts = new Map<string, number>()
  for (const found of rows) {
    const turn = found['#turn']
    if (typeof turn === 'string') counts.set(turn, (counts.get(turn) ?? 0) + 1)
  }
  return Object.fromEntries(counts)
}

/** Reads the rows of `claimRows` and `takeRows`. */
export function claimedRows(waiting: Waiting, rows: readonly Row[]): OfRoom.ClaimedRow[] {
  const [first] = rows
  if (first === undefined || first['#key0'] === null) return []
  const keys = waiting.key.map((_, at) => `#key${at}`)
  const names = Object.keys(first).filter((name) => !name.startsWith('#'))
  return rows.map((found) => {
    const own: Row = {}
    for (const name of names) own[name] = found[name]
    const attempt = found['#attempt']
    return {
      key: keys.map((name) => found[name] as string),
      attempt: typeof attempt === 'string' ? Number(attempt) : undefined,
      row: own,
    }
  })
}

/** Whether `joinMarker` came before, in the same transaction. */
export const isJoined: Statement = {
  text: `SELECT coalesce(${isMarked}, false)::pg_catalog.text AS joined`,
  values: [],
}
