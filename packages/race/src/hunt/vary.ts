/** Other values for one place of an input: keys of other rows, or what was never there. */
import type { KnownTable } from '../core/model.ts'
import type { Field } from './fields.ts'
import type { Input } from './model.ts'
import type { BoundValue } from './profile.ts'

/** A place that can be given other values, and the input with the n-th of them. */
export interface Variation {
  readonly path: string
  /** Undefined if there are no more. */
  input(n: number): Input | undefined
}

/** One variation for each value that a statement binds to a column; those in unique columns first. */
export function variationsOf(
  fields: readonly Field[],
  bound: readonly BoundValue[],
  tables: readonly KnownTable[],
): readonly Variation[] {
  const found = fields.flatMap((field) => {
    const columns = columnsOf(field, bound)
    if (columns.length === 0) return []
    const others = keysBeside(field.value, columns, tables)
    const rank = columns.some((column) => isUnique(column, tables)) ? 0 : 1
    const input = (n: number): Input | undefined => {
      if (others === undefined) return field.with(fresh(field.value, n))
      const other = others[n - 1]
      return other === undefined ? undefined : field.with(likeKind(field.value, other))
    }
    return [{ rank, path: field.path, input }]
  })
  return found.toSorted((one, other) => one.rank - other.rank)
}

/** Columns that its value is bound to; those of its own name, where the same value stands in several places. */
function columnsOf({ path, value }: Field, bound: readonly BoundValue[]): readonly BoundValue[] {
  const all = bound.filter((one) => one.value === String(value))
  const name = plain(path.slice(path.lastIndexOf('.') + 1))
  const named = all.filter(({ table, column }) =>
    [plain(column), plain(table)].some(
      (one) => one !== '' && name !== '' && (one.includes(name) || name.includes(one)),
    ),
  )
  return named.length > 0 ? named : all
}

/** `showId`, `show_id` and `shows` → `show`. */
function plain(name: string): string {
  return name
    .toLowerCase()
    .replaceAll(/[^a-z]/g, '')
    .replace(/(?:ids?|s)$/, '')
}

function isUnique({ table, column, inserted }: BoundValue, tables: readonly KnownTable[]): boolean {
  const known = tables.find(({ name }) => bare(name) === table)
  return inserted && known?.uniques.some((columns) => columns.includes(column)) === true
}

/** Keys of the other rows that the value could name, as many as there are; undefined if it names no row. */
function keysBeside(
  value: string | number,
  columns: readonly BoundValue[],
  tables: readonly KnownTable[],
): readonly string[] | undefined {
  const named = columns
    .map((column) => keysOf(column, tables))
    .filter((keys) => keys.includes(String(value)))
    .map((keys) => keys.filter((key) => key !== String(value)))
  return named.find((others) => others.length > 0) ?? named[0]
}

/** What a column can hold of the keys of rows that are there: its own, or those that it refers to. */
function keysOf({ table, column }: BoundValue, tables: readonly KnownTable[]): readonly string[] {
  const known = tables.find(({ name }) => bare(name) === table)
  const refers = known?.columns.find(({ name }) => name === column)?.refers
  if (refers) {
    const parent = tables.find(({ name }) => name === refers.table)
    return valuesOf(parent, refers.column)
  }
  const isKey = known?.uniques.some((unique) => unique.length === 1 && unique[0] === column)
  return isKey === true ? valuesOf(known, column) : []
}

function valuesOf(table: KnownTable | undefined, column: string): string[] {
  const at = table?.columns.findIndex(({ name }) => name === column) ?? -1
  return (table?.rows ?? []).flatMap((row) => row[at] ?? [])
}

function likeKind(model: string | number, key: string): string | number {
  return typeof model === 'number' && /^-?\d{1,15}$/.test(key) ? Number(key) : key
}

/** Of the same form: a number, a UUID, an address, a word. */
function fresh(value: string | number, n: number): string | number {
  const more = 7_000 + n
  if (typeof value === 'number') return Math.trunc(value) + more
  if (/^\d{1,15}$/.test(value)) return String(Number(value) + more)
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(value)) {
    return value.slice(0, -6) + more.toString(16).padStart(6, '0')
  }
  return value.includes('@') ? value.replace('@', `h${more}@`) : `${value}${more}`
}

function bare(name: string): string {
  return name.slice(name.indexOf('.') + 1)
}
