/** Other values for one place of an input: keys of other rows, or what was never there. */
import type { KnownTable } from '../../core/model.ts'
import { type Field, likeKind } from './fields.ts'
import type { Input } from '../model.ts'
import type { BoundValue } from '../propose/profile.ts'

/** A place that can be given other values. */
export interface Variation {
  readonly path: string
  /** The n-th other value, from 1; undefined if there are no more. */
  value(n: number): string | number | undefined
  /** The input with it. */
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
    const others = keysBeside(field.value, columns, tables, bound)
    const rank = columns.some((column) => isUnique(column, tables)) ? 0 : 1
    const value = (n: number): string | number | undefined => {
      if (others === undefined) return fresh(field.value, n)
      const other = others[n - 1]
      return other === undefined ? undefined : likeKind(field.value, other)
    }
    const input = (n: number): Input | undefined => {
      const next = value(n)
      return next === undefined ? undefined : field.with(next)
    }
    return [{ rank, path: field.path, value, input }]
  })
  return found.toSorted((one, other) => one.rank - other.rank)
}

/** Columns that its value is bound to; those of its own name, where the same value stands in several places. */
function columnsOf({ path, value }: Field, bound: readonly BoundValue[]): readonly BoundValue[] {
  const same = bound.filter((one) => one.value === String(value))
  const all = same.length > 0 ? same : bound.filter((one) => isMadeOf(one.value, String(value)))
  const name = plain(path.slice(path.lastIndexOf('.') + 1))
  const named = all.filter(({ table, column }) =>
    [plain(column), plain(table)].some(
      (one) => one !== '' && name !== '' && (one.includes(name) || name.includes(one)),
    ),
  )
  return named.length > 0 ? named : all
}

/** `user:ann` is made of `Ann`. */
function isMadeOf(bound: string, value: string): boolean {
  const words = bound.toLowerCase().split(/[^\p{L}\p{N}]+/u)
  return words.includes(value.trim().toLowerCase())
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
  bound: readonly BoundValue[],
): readonly string[] | undefined {
  const named = columns
    .map((column) => keysOf(column, tables, bound))
    .filter((keys) => keys.includes(String(value)))
    .map((keys) => keys.filter((key) => key !== String(value)))
  return named.find((others) => others.length > 0) ?? named[0]
}

/**
 * What a column can hold of the keys of rows that are there, its own or those that it refers to. Of the rows that are most
 * like the one that is named first: another account of the same owner, another doctor of the same shift.
 */
function keysOf(
  { table, column, inserted }: BoundValue,
  tables: readonly KnownTable[],
  bound: readonly BoundValue[],
): readonly string[] {
  const known = tables.find(({ name }) => bare(name) === table)
  const refers = known?.columns.find(({ name }) => name === column)?.refers
  const own = bound.filter((one) => one.table === table)
  // A row of a join table names others by its own key; a new one names none.
  const isKey = known?.uniques.some(
    (unique) => unique.includes(column) && (unique.length === 1 || !inserted),
  )
  const among = isKey === true ? likest(known, column, own) : []
  if (refers === undefined) return among
  const parent = tables.find(({ name }) => name === refers.table)
  const named = own.filter((one) => one.column === column)
  const there = named.map((one) => ({ ...one, column: refers.column }))
  return [...new Set([...among, ...likest(parent, refers.column, there)])]
}

/** Values of the column, those of rows that have most in common with the row of these values first. */
function likest(
  table: KnownTable | undefined,
  column: string,
  values: readonly BoundValue[],
): readonly string[] {
  const place = (name: string): number => table?.columns.findIndex((one) => one.name === name) ?? -1
  const at = place(column)
  const rows = table?.rows ?? []
  const given = values.map((one) => [place(one.column), one.value] as const)
  const isNamed = (row: (typeof rows)[number]): boolean =>
    given.length > 0 && given.every(([where, value]) => row[where] === value)
  const model = rows.find(isNamed) ?? []
  const alike = (row: (typeof rows)[number]): number =>
    row.filter((cell, where) => cell !== null && cell === model[where]).length
  const sorted = rows.toSorted((one, other) => alike(other) - alike(one))
  return [...new Set(sorted.flatMap((row) => row[at] ?? []))]
}

/** Of the same form: a number, a UUID, a day, a time of the day, an address, a word. */
function fresh(value: string | number, n: number): string | number {
  const more = 7_000 + n
  if (typeof value === 'number') return Math.trunc(value) + more
  if (/^\d{1,15}$/.test(value)) return String(Number(value) + more)
  if (/^[0-9a-f]{8}-[0-9a-f-]{27}$/i.test(value)) {
    return value.slice(0, -6) + more.toString(16).padStart(6, '0')
  }
  const moment = movedBy(n, value)
  if (moment !== undefined) return moment
  return value.includes('@') ? value.replace('@', `h${more}@`) : `${value}${more}`
}

/** So many days or minutes later; a column refuses what is no day, and a transaction fails then for another reason. */
function movedBy(n: number, value: string): string | undefined {
  const [, day = '', rest = ''] = /^(\d{4}-\d\d-\d\d)((?:[T ].*)?)$/.exec(value) ?? []
  const at = Date.parse(day)
  if (!Number.isNaN(at)) return new Date(at + n * 86_400_000).toISOString().slice(0, 10) + rest
  const [, hours, minutes, seconds = ''] = /^([01]\d|2[0-3]):([0-5]\d)(:\d\d.*)?$/.exec(value) ?? []
  if (hours === undefined) return undefined
  const minute = (Number(hours) * 60 + Number(minutes) + n) % 1440
  const text = (one: number): string => String(one).padStart(2, '0')
  return `${text(Math.trunc(minute / 60))}:${text(minute % 60)}${seconds}`
}

/** Without its schema. */
export function bare(name: string): string {
  return name.slice(name.indexOf('.') + 1)
}
