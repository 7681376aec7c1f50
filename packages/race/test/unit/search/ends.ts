/**
 * Ends of runs made at random, of which the truth is known: what is drawn anew in every run, where the same drawn value
 * stands, and what a race has changed. A *pattern* is an end with variables; a run fills them in.
 */
import { createHash } from 'node:crypto'
import fc from 'fast-check'
import type { Fact } from '../../../src/core/facts.ts'
import type { Run } from '../../../src/core/model.ts'
import { tagged } from '../../../src/core/tag.ts'

/** How a value is drawn; a moment is so many milliseconds from now. */
export type Kind = (typeof kinds)[number]

export type Value =
  | { readonly is: 'constant'; readonly value: string | number | boolean | null }
  | { readonly is: 'drawn'; readonly kind: Kind; readonly name: number; readonly offset: number }
  /** A text: `ORD-<uuid>-5`. */
  | { readonly is: 'text'; readonly parts: readonly Value[] }
  | { readonly is: 'list'; readonly items: readonly Value[] }
  | { readonly is: 'object'; readonly fields: readonly (readonly [string, Value])[] }

export interface Pattern {
  /** Columns a, b, c … */
  readonly tables: readonly {
    readonly name: string
    readonly rows: readonly (readonly Value[])[]
  }[]
  /** One for each flow. */
  readonly ends: readonly Value[]
}

const day = 86_400_000
const offsets = [0, 0, 3_600_000, 30 * day, -14 * day]
const kinds = [
  'uuid',
  'moment',
  'token',
  'epoch',
  'hex',
  'serial',
  'base36',
  'digits',
  'fractions',
] as const

/** A point in time, whichever way it is written. */
export function isMoment(kind: Kind): boolean {
  return kind === 'moment' || kind === 'epoch'
}

/** A column keeps to one kind of value, as columns do. */
type Shape = 'number' | 'word' | 'drawn' | 'text' | 'document' | 'list'

const number = fc.integer({ min: 0, max: 9 })
const word = fc.constantFrom('paid', 'open', 'x', 'alice', 'bob', 'a note of some length')
const constant = (value: string | number | boolean | null): Value => ({ is: 'constant', value })

/** Few variables, so that the same one stands in several places. */
const drawn = (slot: number): fc.Arbitrary<Value> =>
  fc.record({ name: fc.integer({ min: 0, max: 2 }) }).map(({ name }) => variable(slot, name))

/** Variables of one slot are of one kind; moments of one slot have one distance from now. */
function variable(slot: number, name: number): Value {
  const kind = kinds[slot % kinds.length] as Kind
  const offset = offsets[slot % offsets.length] as number
  return { is: 'drawn', kind, name: slot * 10 + name, offset: isMoment(kind) ? offset : 0 }
}

function valueOf(shape: Shape, slot: number): fc.Arbitrary<Value> {
  if (shape === 'number') return number.map(constant)
  if (shape === 'word') return word.map(constant)
  if (shape === 'drawn') return drawn(slot)
  if (shape === 'text')
    return fc.tuple(drawn(slot).filter(isWord), number).map(([one, count]) => ({
      is: 'text',
      parts: [constant('ORD-'), one, constant(`-${count}`)],
    }))
  if (shape === 'list')
    return fc
      .array(fc.oneof(number.map(constant), drawn(slot)), { minLength: 1, maxLength: 3 })
      .map((items) => ({ is: 'list', items }))
  return fc.tuple(number, drawn(slot), word).map(([n, one, text]) => ({
    is: 'object',
    fields: [
      ['n', constant(n)],
      ['nonce', one],
      ['text', constant(text)],
    ],
  }))
}

function isWord(value: Value): boolean {
  return value.is === 'drawn' && value.kind === 'uuid'
}

const shape = fc.constantFrom<Shape>('number', 'word', 'drawn', 'drawn', 'text', 'document', 'list')

/** Slots of kinds that a text may have in it come first, so that every shape finds one. */
const slotFor = (of: Shape): fc.Arbitrary<number> =>
  of === 'text'
    ? fc.constantFrom(0, kinds.length)
    : fc.integer({ min: 0, max: 2 * kinds.length - 1 })

const column = shape.chain((of) => slotFor(of).map((slot) => ({ of, slot })))

const table = fc.array(column, { minLength: 1, maxLength: 3 }).chain((columns) =>
  fc.array(fc.tuple(...columns.map(({ of, slot }) => valueOf(of, slot))), {
    minLength: 0,
    maxLength: 3,
  }),
)

const end: fc.Arbitrary<Value> = fc
  .array(column, { minLength: 1, maxLength: 3 })
  .chain((fields) => fc.tuple(...fields.map(({ of, slot }) => valueOf(of, slot))))
  .map((values) => ({
    is: 'object',
    fields: values.map((value, place) => [`f${place}`, value] as const),
  }))

export const patterns: fc.Arbitrary<Pattern> = fc
  .record({ tables: fc.array(table, { maxLength: 2 }), ends: fc.tuple(end, end) })
  .map(({ tables, ends }) => ({
    tables: tables.map((rows, place) => ({ name: `public.t${place}`, rows })),
    ends,
  }))

/** The values of one run: `run` is its number, of which everything drawn follows. */
export function filled(pattern: Pattern, run: number): Run {
  const from = 1_790_000_000_000 + run * 61_007
  const span = { from, to: from + 400 }
  const hash = (text: string): string => createHash('sha256').update(`${run} ${text}`).digest('hex')
  const draw = ({ kind, name, offset }: Extract<Value, { is: 'drawn' }>): string => {
    const hex = hash(`${kind} ${name}`)
    if (kind === 'uuid')
      return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-4${hex.slice(13, 16)}-a${hex.slice(17, 20)}-${hex.slice(20, 32)}`
    if (kind === 'token') return Buffer.from(hex, 'hex').toString('base64url').slice(0, 22)
    if (kind === 'hex') return hex.slice(0, 32)
    // As Math.random().toString(36) gives it.
    if (kind === 'base36') return BigInt(`0x${hex}`).toString(36).slice(0, 11)
    const digits = (at: number): string => String(BigInt(`0x${hex}`)).slice(at, at + 16)
    // Some of them could be a time in microseconds.
    if (kind === 'digits') return digits(0)
    // As two times Math.random() gives it.
    if (kind === 'fractions') return `0.${digits(0)}0.${digits(20)}`
    if (kind === 'serial') return String(1 + (Number.parseInt(hex.slice(0, 4), 16) % 9_000))
    // Never the same millisecond for two, nor a whole second.
    const at = from + 1 + ((Number.parseInt(hex.slice(0, 4), 16) % 30) * 13 + (name % 13))
    return new Date((at % 1_000 === 0 ? at + 401 : at) + offset).toISOString()
  }
  const fact = (value: Value, where: 'row' | 'answer'): Fact => {
    if (value.is === 'constant') return value.value
    if (value.is === 'text')
      return value.parts
        .map((part) =>
          part.is === 'drawn' ? draw(part) : part.is === 'constant' ? part.value : '',
        )
        .join('')
    if (value.is === 'list') return value.items.map((item) => fact(item, where))
    if (value.is === 'object')
      return {
        kind: 'object',
        entries: value.fields.map(([name, field]) => [name, fact(field, where)] as const),
      }
    const text = draw(value)
    if (value.kind === 'serial') return { kind: 'key', id: `public.s.id=${text}`, shown: '‹new›' }
    if (value.kind === 'epoch') return Date.parse(text)
    if (value.kind !== 'moment') return text
    // PostgreSQL keeps microseconds, programs do not.
    return where === 'row'
      ? text.replace('T', ' ').replace('Z', `${100 + (value.name % 900)}+00`)
      : { kind: 'object', entries: Object.entries(tagged('Date', text)) as [string, Fact][] }
  }
  return {
    steps: [],
    decisions: [],
    outcomes: pattern.ends.map(() => ({ kind: 'returned', value: '' })),
    digest: '',
    state: '',
    tables: [],
    deadlocks: 0,
    notes: [],
    facts: {
      span,
      tables: pattern.tables.map(({ name, rows }) => ({
        name,
        columns: ['a', 'b', 'c'].slice(0, rows[0]?.length ?? 1),
        rows: shuffled(rows, hash).map((row) => row.map((value) => fact(value, 'row'))),
      })),
      ends: pattern.ends.map((value) => fact(value, 'answer')),
    },
  }
}

/** Rows come in any order. */
function shuffled<Item>(items: readonly Item[], hash: (text: string) => string): Item[] {
  return items
    .map((item, place) => ({ item, by: hash(`row ${place}`) }))
    .sort((one, other) => (one.by < other.by ? -1 : 1))
    .map(({ item }) => item)
}

/** What a race may do to an end: one value is another one, or a row is missing or there twice. */
export function changed(pattern: Pattern, seed: number): Pattern {
  const places: Place[] = []
  visit(pattern, (place) => places.push(place))
  const choice = seed % (places.length + 2)
  if (choice >= places.length) return withRows(pattern, seed, choice === places.length)
  const { at, value } = places[choice] as Place
  return replace(pattern, at, otherThan(value, Math.floor(seed / 7)))
}

interface Place {
  readonly at: string
  readonly value: Value
}

function otherThan(value: Value, seed: number): Value {
  if (value.is === 'constant') {
    if (typeof value.value === 'number' && seed % 3 === 0) return constant(String(value.value))
    if (value.value === 0 && seed % 3 === 1) return constant(-0)
    return typeof value.value === 'number' ? constant(value.value + 1) : constant(`${value.value}!`)
  }
  if (value.is !== 'drawn') return value
  const slot = Math.floor(value.name / 10)
  // Another one of those that there are, a new one, or another time.
  if (seed % 3 === 0) return { ...variable(slot, 9), offset: value.offset } as Value
  if (isMoment(value.kind) && seed % 3 === 1) return { ...value, offset: value.offset + 30 * day }
  return { ...variable(slot, (value.name + 1) % 3), offset: value.offset } as Value
}

function withRows({ tables, ends }: Pattern, seed: number, more: boolean): Pattern {
  const place = tables.length === 0 ? 0 : seed % tables.length
  return {
    ends,
    tables: tables.map((one, at) => {
      const [first] = one.rows
      if (at !== place || first === undefined) return one
      return { ...one, rows: more ? [...one.rows, first] : one.rows.slice(1) }
    }),
  }
}

function visit(pattern: Pattern, take: (place: Place) => void): void {
  replaceAll(pattern, (value, at) => {
    if (value.is === 'constant' || value.is === 'drawn') take({ at, value })
    return value
  })
}

function replace(pattern: Pattern, at: string, value: Value): Pattern {
  return replaceAll(pattern, (one, place) => (place === at ? value : one))
}

/** Goes through all values, from the outside. */
export function replaceAll(pattern: Pattern, by: (value: Value, at: string) => Value): Pattern {
  const go = (value: Value, at: string): Value => {
    const found = by(value, at)
    if (found.is === 'text')
      return { ...found, parts: found.parts.map((part, place) => go(part, `${at}.${place}`)) }
    if (found.is === 'list')
      return { ...found, items: found.items.map((item, place) => go(item, `${at}.${place}`)) }
    if (found.is === 'object')
      return {
        ...found,
        fields: found.fields.map(([name, field]) => [name, go(field, `${at}.${name}`)]),
      }
    return found
  }
  return {
    tables: pattern.tables.map((one, table) => ({
      ...one,
      rows: one.rows.map((row, place) =>
        row.map((value, cell) => go(value, `${table}/${place}/${cell}`)),
      ),
    })),
    ends: pattern.ends.map((value, flow) => go(value, `end ${flow}`)),
  }
}
