/**
 * Rows as a file may have them that is committed: what looks like a secret, or like somebody's address, has something of
 * the same form in its place, and the same thing wherever it stands.
 */
import { readJson } from '../../core/read-json.ts'
import type { NamedRows } from '../../run/state/named-rows.ts'
import type { Heard } from '../record/heard.ts'
import { isPlain, secret } from '../record/http-input.ts'
import { secretValues } from '../report/mask-secrets.ts'
import type { Again, Input } from '../model.ts'

/** Names of columns, and of fields in documents. */
const secretColumn =
  /passw|pwd|secret|token|api_?key|private_?key|access_?key|salt|credential|csrf|otp|pin_?code|cvv|cvc|iban|ssn|card_?number/i
/** Where a mere word is none: `session` may be a lecture. */
const perhapsSecret = /session|cookie|signature|hash|e_?mail|phone/i
/** What is about a secret, and is none: when it was changed, how often. */
const aboutOne = /_at$|_on$|at$|expir|_count$|attempts|verified|enabled|_type$|version/i
/** These are secrets although they are numbers. */
const secretNumber = /otp|pin_?code|cvv|cvc|ssn|card_?number|phone/i

/** What is replaced wherever it stands; a short one, and a mere word, stands for other things as well. */
const isUnlikely = (value: string): boolean => value.length >= 6 && /[\d@]/.test(value)

/** What a test is made of. */
type Material = Pick<Again, 'rows' | 'heard' | 'inputs' | 'sentence'>

/** The same without secrets of rows, and the columns that had some: `public.users.password`. */
export function disguise(
  material: Material,
  sent: readonly Input[],
): Material & Pick<Again, 'disguised' | 'secrets'> {
  const places = new Map<string, string>()
  const columns = new Set<string>()
  const placeOf = (value: string): string => {
    const known = places.get(value) ?? formOf(value, places.size + 1)
    places.set(value, known)
    return known
  }
  for (const [table, { columns: names, rows }] of Object.entries(material.rows.tables)) {
    for (const [at, name] of names.entries()) {
      for (const row of rows) {
        const values = secretsIn(name, row[at] ?? null)
        if (values.length > 0) columns.add(`${table}.${name}`)
        for (const value of values) placeOf(value)
      }
    }
  }
  // What was sent as a secret is one in rows too, whatever its column is called.
  for (const value of sent.flatMap((input) => [...secretValues(input)])) {
    if (!isUnlikely(value)) continue
    const found = columnsWith(material.rows, value)
    for (const column of found) columns.add(column)
    if (found.length > 0) placeOf(value)
  }
  // A secret within another one is replaced with it; addresses are written in this way and that.
  const patterns = [...places]
    .filter(([value]) => isUnlikely(value))
    .toSorted(([one], [other]) => other.length - one.length)
    .map(
      ([value, place]) =>
        [new RegExp(value.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'), 'gi'), place] as const,
    )
  const inText = (text: string): string =>
    patterns.reduce((now, [pattern, place]) => now.replaceAll(pattern, () => place), text)
  const inCell = (column: string, cell: string): string =>
    (isSecret(column, cell) ? places.get(cell) : undefined) ?? inText(cell)
  return {
    rows: rowsWith(material.rows, inCell),
    heard: material.heard.map((one) => textsWith(one, inText)),
    inputs: textsWith(material.inputs, inText),
    sentence: inText(material.sentence),
    disguised: [...columns],
    secrets: Object.fromEntries(
      sent.flatMap((input) => headersWith(input, (value) => places.get(value))),
    ),
  }
}

/** Secret headers that rows know, as the placeholders in these rows say them. */
function headersWith(
  input: Input,
  placeOf: (value: string) => string | undefined,
): [string, string][] {
  if (input.kind !== 'http') return []
  return input.headers.flatMap(([name, value]): [string, string][] => {
    if (!secret.test(name)) return []
    const parts = value.split(/([\s;,]+|[\w.-]+=)/).map((part, at) => {
      const isBetween = at % 2 === 1 || part === '' || /^(?:bearer|basic|token)$/i.test(part)
      return isBetween ? part : placeOf(part)
    })
    return parts.includes(undefined) ? [] : [[name, parts.join('')]]
  })
}

/** The secrets in one cell. */
function secretsIn(column: string, cell: string | null): readonly string[] {
  if (cell === null || cell === '') return []
  const json = /^[[{]/.test(cell) ? readJson(cell) : undefined
  if (typeof json === 'object' && json !== null) return [...withinDocument(json)]
  return isSecret(column, cell) ? [cell] : []
}

function* withinDocument(value: unknown, name = ''): Generator<string> {
  if (typeof value === 'string' || typeof value === 'number') {
    if (isSecret(name, String(value))) yield String(value)
  } else if (Array.isArray(value)) {
    for (const one of value) yield* withinDocument(one, name)
  } else if (isPlain(value)) {
    for (const [field, one] of Object.entries(value)) yield* withinDocument(one, field)
  }
}

function isSecret(name: string, value: string): boolean {
  const plain = name.replaceAll('"', '')
  const isNamed = secretColumn.test(plain) || (perhapsSecret.test(plain) && isUnlikely(value))
  if (!isNamed || value === '') return false
  if (/^-?\d+(?:\.\d+)?$/.test(value)) return secretNumber.test(plain)
  const isPlace = aboutOne.test(plain) || /^(?:t|f|true|false|\d{4}-\d\d-\d\d.*)$/.test(value)
  return !isPlace
}

function columnsWith({ tables }: NamedRows, value: string): string[] {
  return Object.entries(tables).flatMap(([table, { columns, rows }]) =>
    columns
      .filter((_, at) => rows.some((row) => row[at]?.includes(value)))
      .map((column) => `${table}.${column}`),
  )
}

/** Of the same form, and another one for each number. */
function formOf(value: string, n: number): string {
  const end = String(n)
  if (/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i.test(value)) {
    return `00000000-0000-4000-8000-${end.padStart(12, '0')}`
  }
  if (/^\\x(?:[0-9a-f]{2})+$/i.test(value)) return `\\x${end.padStart(value.length - 2, '0')}`
  if (/^\d+$/.test(value)) return end.padStart(value.length, '9')
  if (/^[^\s@]+@[^\s@]+$/.test(value)) return `person${end}@example.com`
  if (/^[0-9a-f]+$/i.test(value)) return end.padStart(value.length, '0')
  const place = `placeholder-${end}`
  // A column of fixed length takes no more than it had.
  return place.length <= value.length ? place : end.padStart(value.length, 'x')
}

function rowsWith(
  { tables, sequences }: NamedRows,
  inCell: (column: string, cell: string) => string,
): NamedRows {
  return {
    sequences,
    tables: Object.fromEntries(
      Object.entries(tables).map(([name, { columns, rows }]) => [
        name,
        {
          columns,
          rows: rows.map((row) =>
            row.map((cell, at) => (cell === null ? null : inCell(columns[at] ?? '', cell))),
          ),
        },
      ]),
    ),
  }
}

/** Every text in it. */
function textsWith<T extends readonly Input[] | Heard>(
  value: T,
  inText: (text: string) => string,
): T {
  const within = (one: unknown): unknown => {
    if (typeof one === 'string') return inText(one)
    if (Array.isArray(one)) return one.map(within)
    if (one instanceof Map) return new Map([...one].map(([name, each]) => [name, within(each)]))
    if (!isPlain(one)) return one
    return Object.fromEntries(Object.entries(one).map(([name, each]) => [name, within(each)]))
  }
  return within(value) as T
}
