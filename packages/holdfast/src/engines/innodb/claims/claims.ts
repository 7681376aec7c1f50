import type {
  ClaimedRow,
  ClaimLayout,
  ColumnValue,
  PriorityColumn,
  Waiting,
} from '../../../claims/engine.ts'
import type { Row, Statement } from '../../../core/driver.ts'
import { inUtc, utcLater, utcNow } from '../sql/clock.ts'
import { type Fragment, quoteIdentifier, valuesOf } from '../sql/text.ts'
import { type ClaimTable, columnOf } from './claim-table.ts'
import { fittingText } from './fitting-text.ts'

/**
 * Statements that claim rows of a table of the user's, in a transaction at READ COMMITTED: neither product has an UPDATE
 * that says which rows it has changed, and at REPEATABLE READ whoever finds nothing keeps everybody from adding a row.
 */

export function all(...parts: readonly Fragment[]): Fragment {
  const some = parts.filter(({ text }) => text !== '')
  return { text: some.map(({ text }) => text).join(' AND '), values: valuesOf(some) }
}

/** The conditions of our rows with this status. */
export function inStatus(table: ClaimTable, waiting: Waiting, value: ColumnValue): Fragment {
  return all(
    table.equals(waiting.status, value),
    ...waiting.where.map(([column, fixed]) => table.equals(column, fixed)),
  )
}

const nothing: Fragment = { text: '', values: [] }

/** The rows that may be claimed now. */
function isDue(table: ClaimTable, waiting: Waiting): Fragment {
  const { runAt } = waiting
  const due =
    runAt === undefined ? nothing : { text: `${columnOf(runAt)} <= ${utcNow}`, values: [] }
  return all(inStatus(table, waiting, waiting.pending), due)
}

export function fixedColumns({ status, where }: Waiting): readonly string[] {
  return [status, ...where.map(([column]) => column)]
}

function orderOf(columns: readonly string[]): string {
  return columns.map(columnOf).join(', ')
}

/** One of the values of the priority column. */
export type Level = { readonly column: string; readonly value: string }

function atLevel(table: ClaimTable, level: Level | undefined): Fragment {
  return level === undefined ? nothing : table.equals(level.column, level.value)
}

/**
 * Locks the next rows; those that others have locked are left out. With the index that has them in order, only these are
 * locked. `wanted` is what comes back of them.
 */
function nextRows(
  table: ClaimTable,
  waiting: Waiting,
  level: Level | undefined,
  limit: number,
  wanted: string,
): Statement {
  const fixed = [...fixedColumns(waiting), ...(level === undefined ? [] : [level.column])]
  const where = all(isDue(table, waiting), atLevel(table, level))
  const text = `${inUtc.before}SELECT ${inUtc.hint}${wanted}
FROM ${table.text} t${table.inOrder({ fixed, order: waiting.order })} WHERE ${where.text}
ORDER BY ${orderOf(waiting.order)} LIMIT ? FOR UPDATE SKIP LOCKED`
  return { text, values: [...where.values, String(limit)] }
}

export function pickRows(
  table: ClaimTable,
  waiting: Waiting,
  level: Level | undefined,
  limit: number,
): Statement {
  return nextRows(table, waiting, level, limit, table.keyTexts())
}

/** The same with the rows as they are under the lock, which no snapshot is older than. */
export function takeRows(
  table: ClaimTable,
  waiting: Waiting,
  level: Level | undefined,
  limit: number,
): Statement {
  const wanted = `${table.keyTexts()}, ${table.columns(waiting)}`
  return nextRows(table, waiting, level, limit, wanted)
}

/** At once no more; the server remembers so many steps of a recursion. */
export const levelsAtOnce = 100

/**
 * The values that the priority has, in order, found by jumping from one to the next. Each is then looked at by itself:
 * its rows end at the first one in the future, however many follow.
 */
export function nextLevels(
  table: ClaimTable,
  waiting: Waiting,
  { column, first }: PriorityColumn,
  after: Level | undefined,
): Statement {
  const name = columnOf(column)
  const [beyond, direction] = first === 'largest' ? ['<', ' DESC'] : ['>', '']
  const where = inStatus(table, waiting, waiting.pending)
  const index = table.inOrder({ fixed: fixedColumns(waiting), order: [column] })
  const one = (more: string): string =>
    `(SELECT ${name} FROM ${table.text} t${index} WHERE ${where.text}${more} ORDER BY ${name}${direction} LIMIT 1)`
  const last = after && table.value(column, after.value)
  const behind = last === undefined ? '' : ` AND ${name} ${beyond} ${last.text}`
  const text = `WITH RECURSIVE \`#level\` AS (
  SELECT ${one(behind)} AS \`#value\`, 1 AS \`#at\`
  UNION ALL
  SELECT ${one(` AND ${name} ${beyond} \`#level\`.\`#value\``)}, \`#at\` + 1
  FROM \`#level\` WHERE \`#value\` IS NOT NULL AND \`#at\` < ${levelsAtOnce}
)
SELECT CAST(\`#value\` AS CHAR) AS \`#level\` FROM \`#level\` WHERE \`#value\` IS NOT NULL ORDER BY \`#at\``
  return { text, values: [...where.values, ...(last?.values ?? []), ...where.values] }
}

/** One of several rows, in a list that is as long as the next power of two: few texts for all numbers of rows. */
export function anyOf(conditions: readonly Fragment[]): Fragment {
  const padded = padding(conditions)
  return {
    text: padded.map(({ text }) => `(${text})`).join(' OR '),
    values: valuesOf(padded),
  }
}

/** The last one is repeated. */
export function padding<T>(list: readonly T[]): readonly T[] {
  const most = list.length === 0 ? 0 : 2 ** Math.ceil(Math.log2(list.length))
  return Array.from({ length: most }, (_, at) => list[Math.min(at, list.length - 1)] as T)
}

/** At least so many milliseconds, in microseconds: a column that has fewer digits cuts off the rest. */
export function leaseSpan(table: ClaimTable, column: string, ms: number): string {
  const [, digits = '0'] = /^\w+\((\d)\)/.exec(table.typeOf(column)) ?? []
  const lost = digits === '6' ? 0 : 10 ** (6 - Number(digits))
  return String(Math.ceil(ms * 1_000) + lost)
}

export function set(column: string | undefined, value: Fragment | string): Fragment[] {
  if (column === undefined) return []
  const { text, values } = typeof value === 'string' ? { text: value, values: [] } : value
  return [{ text: `t.${quoteIdentifier(column)} = ${text}`, values }]
}

/** What an UPDATE of rows by their keys is. */
export function changeRows(
  table: ClaimTable,
  sets: readonly Fragment[],
  where: Fragment,
): Statement {
  const text = `${inUtc.before}UPDATE ${inUtc.hint}${table.text} t${table.byKey} SET ${sets.map(({ text: each }) => each).join(', ')}
WHERE ${where.text}`
  return { text, values: [...valuesOf(sets), ...where.values] }
}

interface NewLease {
  readonly token: string
  readonly ms: number
  readonly holder: string
}

/** Writes the lease into rows that are locked. The token is what fences everything later. */
export function leaseRows(
  table: ClaimTable,
  layout: ClaimLayout,
  keys: readonly (readonly string[])[],
  { token, ms, holder }: NewLease,
): Statement {
  const { attempts } = layout
  const span = leaseSpan(table, layout.leaseUntil, ms)
  const sets = [
    ...set(layout.status, table.value(layout.status, layout.claimed)),
    ...set(layout.token, { text: '?', values: [token] }),
    ...set(layout.leaseUntil, { text: utcLater, values: [span] }),
    ...(attempts === undefined ? [] : set(attempts, `COALESCE(${columnOf(attempts)}, 0) + 1`)),
    ...(layout.holder === undefined
      ? []
      : set(layout.holder, fittingText(table, layout.holder, holder))),
  ]
  return changeRows(table, sets, anyOf(keys.map((key) => table.hasKey(key))))
}

/** The rows as they were claimed: whatever a trigger has made of them. */
export function readClaimed(
  table: ClaimTable,
  layout: ClaimLayout,
  keys: readonly (readonly string[])[],
  token: string,
): Statement {
  const { attempts } = layout
  const attempt =
    attempts === undefined
      ? ''
      : `, CAST(${columnOf(attempts)} AS CHAR) AS ${quoteIdentifier('#attempt')}`
  const rows = anyOf(keys.map((key) => table.hasKey(key)))
  const isOurs = all(table.equals(layout.status, layout.claimed), {
    text: `${columnOf(layout.token)} = ?`,
    values: [token],
  })
  const text = `SELECT ${table.keyTexts()}${attempt}, ${table.columns(layout)}
FROM ${table.text} t${table.byKey} WHERE (${rows.text}) AND ${isOurs.text}`
  return { text, values: [...rows.values, ...isOurs.values] }
}

export function keyOf({ key }: Waiting, found: Row): readonly string[] {
  return key.map((_, at) => String(found[`#key${at}`]))
}

/** Reads the rows of `readClaimed` and `takeRows`. */
export function claimedRow(waiting: Waiting, found: Row): ClaimedRow {
  const own = Object.entries(found).filter(([name]) => !name.startsWith('#'))
  const attempt = found['#attempt']
  return {
    key: keyOf(waiting, found),
    attempt: attempt === undefined || attempt === null ? undefined : Number(attempt),
    row: Object.fromEntries(own),
  }
}
