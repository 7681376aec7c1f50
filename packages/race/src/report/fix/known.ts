/** What is known of tables and of the types of their columns: a suggestion is made only where that bears it out. */
import type { KnownColumn, KnownTable } from '../../core/model.ts'
import { readJson } from '../../core/read-json.ts'
import type { History } from '../anomaly/history.ts'

/** The table that a statement calls so. */
export function knownTable(
  { known }: Pick<History, 'known'>,
  name: string,
): KnownTable | undefined {
  const exact = known.find((one) => one.name === name || one.name === `public.${name}`)
  if (exact !== undefined) return exact
  const [found, another] = known.filter((one) => one.name.slice(one.name.indexOf('.') + 1) === name)
  return another === undefined ? found : undefined
}

export function knownColumn(
  history: Pick<History, 'known'>,
  table: string,
  column: string,
): KnownColumn | undefined {
  return knownTable(history, table)?.columns.find(({ name }) => name === column)
}

const integers = new Set(['int2', 'int4', 'int8'])

function isInteger(column: KnownColumn | undefined): boolean {
  return column !== undefined && integers.has(column.type)
}

/** Numbers that are what they are written as; those of floating point are not. */
export function isNumber(column: KnownColumn | undefined): boolean {
  return isInteger(column) || column?.type === 'numeric'
}

/** A column that says how something is, whatever it is called. */
export function isStateType(column: KnownColumn | undefined): boolean {
  return column?.type === 'bool' || column?.type === 'enum'
}

const texts = new Set(['text', 'varchar', 'uuid', 'enum', 'bool'])
const lists = new Set(['_int2', '_int4', '_int8', '_text', '_varchar', '_uuid'])

/**
 * Whether what a client was told can be compared with the row later. Not json, xml or points, which have no equality;
 * not floating point; not times, which lose their microseconds in a client.
 */
export function isComparable(column: KnownColumn | undefined): column is KnownColumn {
  if (column === undefined || !column.exact) return false
  const { type } = column
  return isNumber(column) || texts.has(type) || lists.has(type) || type === 'jsonb'
}

/** Whether two texts stand for the same value; undefined if that is not known. */
export function sameValue(
  column: KnownColumn | undefined,
  one: string | null,
  other: string | null,
): boolean | undefined {
  if (one === other) return true
  if (one === null || other === null) return false
  if (column === undefined || !isComparable(column)) return undefined
  return spelled(column, one) === spelled(column, other)
}

/** A value in the one spelling that its type has. */
function spelled(column: KnownColumn, value: string): string {
  const { type } = column
  if (isNumber(column)) return String(Number(value.trim()))
  if (type === 'uuid') return value.replaceAll(/[{}\s-]/g, '').toLowerCase()
  if (type === 'bool') return /^\s*(?:t|true|y|yes|on|1)\s*$/i.test(value) ? 't' : 'f'
  if (type === 'jsonb') return JSON.stringify(sorted(readJson(value)))
  if (lists.has(type)) return JSON.stringify(readArray(value) ?? value)
  return value
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted)
  if (typeof value !== 'object' || value === null) return value
  const entries = Object.entries(value).toSorted(([one], [other]) => (one < other ? -1 : 1))
  return Object.fromEntries(entries.map(([name, inner]) => [name, sorted(inner)]))
}

export function sameJson(one: unknown, other: unknown): boolean {
  return JSON.stringify(sorted(one)) === JSON.stringify(sorted(other))
}

/** The elements of `{1,2}` or `{"a b",NULL}`; undefined for lists of lists, and for what is none. */
export function readArray(text: string): (string | null)[] | undefined {
  const [, inside] = /^\s*\{(.*)\}\s*$/s.exec(text) ?? []
  if (inside === undefined) return undefined
  if (inside.trim() === '') return []
  const element = /\s*(?:"((?:[^"\\]|\\.)*)"|([^",{}\\]+))\s*(?:,|$)/gsy
  const found: (string | null)[] = []
  while (element.lastIndex < inside.length) {
    const match = element.exec(inside)
    if (match === null) return undefined
    const [, quoted, bare = ''] = match
    if (quoted !== undefined) found.push(quoted.replaceAll(/\\(.)/gs, '$1'))
    else found.push(/^null$/i.test(bare.trim()) ? null : bare.trim())
  }
  return found
}

/** A value as SQL writes it for this column. */
export function sqlValue(column: KnownColumn, text: string): string {
  if (column.type === 'bool') return spelled(column, text) === 't' ? 'true' : 'false'
  if (isNumber(column) && /^-?\d+(?:\.\d+)?$/.test(text)) return text
  return `'${text.replaceAll("'", "''")}'`
}

/** A value as a statement is shown, without its quotes. */
export function bare(value: string): string {
  return value.replace(/^'(.*)'$/s, '$1').replaceAll("''", "'")
}
