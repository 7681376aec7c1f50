import type {
  ColumnValue,
  FinishLayout,
  TakeLayout,
  Waiting as AnyWaiting,
} from '../../../claims/engine.ts'
import type { Executor, Row, Statement, Value } from '../../../core/driver.ts'
import { isStorable } from '../../../core/storable.ts'
import { type Fragment, quoteIdentifier, tableText } from '../sql/text.ts'
import { isPast, momentKind, type MomentKind } from './moments.ts'
import { tableFacts } from './table-facts.ts'

/** A layout over a table that was looked at: how moments are written in each column. */
export interface Seen {
  readonly kindOf: (column: string) => MomentKind
}
export type Waiting = AnyWaiting & Seen
export type LeaseLayout = FinishLayout & Seen
export type TakingLayout = TakeLayout & Seen

/** Looks at the table once. It is looked at again as long as it is not there. */
export function seeing<L extends AnyWaiting>(layout: L): (on: Executor) => Promise<L & Seen> {
  let seen: (L & Seen) | undefined
  return async (on) => {
    if (seen !== undefined) return seen
    const { columns } = await tableFacts(on, layout.table)
    const kindOf = (column: string): MomentKind => momentKind(columns.get(column)?.type ?? '')
    const looked = { ...layout, kindOf }
    if (columns.size > 0) seen = looked
    return looked
  }
}

/** Names of our own start with `#`, so that they hide none of the caller's. */
const row = '"#row"'

/** Always behind the name of its table: SQLite takes a quoted name that is none for a text. */
export function columnOf(column: string): string {
  return `${row}.${quoteIdentifier(column)}`
}

export function tableOf({ table }: AnyWaiting): string {
  return `${tableText(table)} AS ${row}`
}

/** Literals and not parameters: only then does a partial index fit that has them in its predicate. */
export function valueText(value: ColumnValue): string {
  if (value === null) return 'NULL'
  if (typeof value === 'boolean') return value ? '1' : '0'
  if (typeof value === 'number' && Number.isFinite(value)) return String(value)
  return `'${String(value).replaceAll("'", "''")}'`
}

export function equals(column: string, value: ColumnValue): string {
  const left = columnOf(column)
  return value === null ? `${left} IS NULL` : `${left} = ${valueText(value)}`
}

/** The conditions of our rows with this status. */
export function inStatus({ status, where }: AnyWaiting, value: ColumnValue): string {
  return [equals(status, value), ...where.map(([column, fixed]) => equals(column, fixed))].join(
    ' AND ',
  )
}

/** The rows that may be claimed now. */
export function isDue(waiting: Waiting): string {
  const { runAt, pending, kindOf } = waiting
  const due = runAt === undefined ? '' : ` AND ${isPast(columnOf(runAt), kindOf(runAt))}`
  return `${inStatus(waiting, pending)}${due}`
}

export function orderOf({ priority, order }: AnyWaiting): string {
  const first =
    priority === undefined
      ? []
      : [`${columnOf(priority.column)}${priority.first === 'largest' ? ' DESC' : ''}`]
  return [...first, ...order.map(columnOf)].join(', ')
}

/** One row by its key, whose values SQLite compares as the types that the columns were declared with. */
export function isKey({ key }: AnyWaiting): string {
  return key.map((column) => `${columnOf(column)} = ?`).join(' AND ')
}

export function keyTexts(key: readonly string[]): string {
  return key.map((column, at) => `CAST(${columnOf(column)} AS TEXT) AS "#key${at}"`).join(', ')
}

export function keyIn({ key }: AnyWaiting, found: Row): readonly string[] {
  return key.map((_, at) => String(found[`#key${at}`]))
}

/** Whether its key is one that a caller can give back. */
export function hasKeyIn({ key }: AnyWaiting, found: Row): boolean {
  return key.every((_, at) => isStorable(found[`#key${at}`]))
}

/** What is read of a row, besides what is ours. */
export function returned({ columns, texts }: AnyWaiting): readonly string[] {
  if (texts !== undefined)
    return texts.map((column) => `CAST(${columnOf(column)} AS TEXT) AS ${quoteIdentifier(column)}`)
  return columns === undefined ? [`${row}.*`] : columns.map(columnOf)
}

/** The caller's part of what was read. */
export function ownIn(found: Row): Row {
  return Object.fromEntries(Object.entries(found).filter(([name]) => !name.startsWith('#')))
}

/** One assignment. */
export interface Assigned extends Fragment {
  readonly column: string
}

export function assigned(column: string | undefined, to: string | Fragment): readonly Assigned[] {
  if (column === undefined) return []
  return [{ column, ...(typeof to === 'string' ? { text: to, values: [] } : to) }]
}

/** Changes rows that meet a condition; each assignment reads the row as it was. */
export function updateText(
  layout: AnyWaiting,
  sets: readonly Assigned[],
  condition: string,
  values: readonly Value[],
  returning = '',
): Statement {
  const set = sets.map(({ column, text }) => `${quoteIdentifier(column)} = ${text}`).join(', ')
  return {
    text: `UPDATE ${tableOf(layout)} SET ${set} WHERE ${condition}${returning}`,
    values: [...sets.flatMap((each) => each.values), ...values],
  }
}

/** Changes no row, and takes the right to write all the same. */
export function touch({ status, table }: AnyWaiting): Statement {
  const name = quoteIdentifier(status)
  return { text: `UPDATE ${tableText(table)} SET ${name} = ${name} WHERE 0`, values: [] }
}
