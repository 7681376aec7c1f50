/** The facts of a run, taken apart once: trees whose leaves are parts of texts, each with its place. */
import {
  type Fact,
  type Facts,
  isList,
  type PerhapsKey,
  type RowKey,
  type Span,
} from '../../core/facts.ts'
import type { Run } from '../../core/model.ts'
import { readJson } from '../../core/read-json.ts'
import { isTag } from '../../core/tag.ts'
import { looksDrawn, type Part, partsOf } from './text-parts.ts'

/**
 * `path` is where a value stands, in words: `public.t.doc items sku`. The places of a list are one, and so are those
 * behind names that were drawn.
 */
export type Node =
  | {
      readonly kind: 'leaf'
      readonly path: string
      readonly type: LeafType
      readonly parts: readonly Part[]
    }
  | { readonly kind: 'key'; readonly path: string; readonly key: RowKey }
  | { readonly kind: 'perhaps'; readonly path: string; readonly perhaps: PerhapsKey }
  | { readonly kind: 'joined'; readonly path: string; readonly parts: readonly Node[] }
  | { readonly kind: 'list'; readonly path: string; readonly items: readonly Node[] }
  | { readonly kind: 'object'; readonly path: string; readonly entries: readonly Entry[] }

export type Leaf = Extract<Node, { readonly kind: 'leaf' }>
/** `said` is what needs no look: true, false, null. */
export type LeafType = 'text' | 'number' | 'said'

export interface Entry {
  readonly name: Leaf
  readonly value: Node
}

export interface PreparedTable {
  readonly name: string
  readonly columns: readonly string[]
  readonly rows: readonly PreparedRow[]
}

export interface PreparedRow {
  readonly cells: readonly Node[]
  /** Equal to another run's if the rows are the same to the letter; undefined if keys are in it. */
  readonly text: string | undefined
}

export interface Prepared {
  readonly span: Span
  readonly tables: readonly PreparedTable[]
  /** By flow. */
  readonly ends: readonly Node[]
}

const known = new WeakMap<Run, Prepared>()

export function prepare(run: Run): Prepared {
  let prepared = known.get(run)
  if (prepared === undefined) {
    prepared = take(run.facts ?? factsFrom(run))
    known.set(run, prepared)
  }
  return prepared
}

function take({ span, tables, ends }: Facts): Prepared {
  return {
    span,
    ends: ends.map((end, flow) => nodeOf(end, `${flow}`)),
    tables: tables.map(({ name, columns, rows }) => ({
      name,
      columns,
      rows: rows.map((row) => ({
        cells: row.map((cell, at) => nodeOf(cell, `${name}.${columns[at]}`)),
        text: row.some(hasKey) ? undefined : JSON.stringify(row, exactly),
      })),
    })),
  }
}

/** JSON has one zero. */
function exactly(_: string, value: unknown): unknown {
  return Object.is(value, -0) ? '‹-0›' : value
}

function hasKey(fact: Fact): boolean {
  if (typeof fact !== 'object' || fact === null) return false
  if (isList(fact)) return fact.some(hasKey)
  return fact.kind !== 'object' || fact.entries.some(([, value]) => hasKey(value))
}

function nodeOf(fact: Fact, path: string): Node {
  if (fact === null || typeof fact === 'boolean') return leafOf(String(fact), path, 'said')
  if (typeof fact === 'number') {
    const text = Object.is(fact, -0) ? '-0' : String(fact)
    return leafOf(text, path, 'number')
  }
  if (typeof fact === 'string') return nodeOfText(fact, path)
  if (isList(fact)) return { kind: 'list', path, items: fact.map((item) => nodeOf(item, path)) }
  if (fact.kind === 'key') return { kind: 'key', path, key: fact }
  if (fact.kind === 'perhaps') return { kind: 'perhaps', path, perhaps: fact }
  if (fact.kind === 'text')
    return { kind: 'joined', path, parts: fact.parts.map((part) => nodeOf(part, path)) }
  return objectOf(fact.entries, path)
}

/** In the order of their names: objects have none. */
function objectOf(entries: readonly (readonly [string, Fact])[], path: string): Node {
  const sorted = entries.toSorted(([one], [other]) => (one < other ? -1 : 1))
  return {
    kind: 'object',
    path,
    entries: sorted.map(([name, value]) => ({
      name: leafOf(name, `${path} (names)`, 'text'),
      value: nodeOf(value, isTag(name) ? path : `${path} ${looksDrawn(name) ? '*' : name}`),
    })),
  }
}

function leafOf(text: string, path: string, type: LeafType): Leaf {
  // A small number is no time, and was not drawn.
  const isPlain = type === 'said' || (type === 'number' && /^-?\d{1,9}$/.test(text))
  const parts: readonly Part[] = isPlain ? [{ kind: 'plain', text }] : partsOf(text)
  return { kind: 'leaf', path, type, parts }
}

/** A document or a token in a text is looked into. */
function nodeOfText(text: string, path: string): Node {
  if (/^\s*[[{]/.test(text)) {
    const inside = readJson(text)
    if (typeof inside === 'object' && inside !== null) return nodeOf(factOf(inside), path)
  }
  if (/^eyJ[\w-]+\.eyJ[\w-]+\.[\w-]*$/.test(text)) {
    const [head = '', claims = '', signature = ''] = text.split('.')
    const parts = [head, claims].map((one) => readJson(Buffer.from(one, 'base64url').toString()))
    if (parts.every((one) => one !== undefined))
      return nodeOf([...parts.map(factOf), signature], path)
  }
  return leafOf(text, path, 'text')
}

/** A value of JSON as a fact. */
function factOf(value: unknown): Fact {
  if (Array.isArray(value)) return value.map(factOf)
  if (typeof value === 'object' && value !== null)
    return {
      kind: 'object',
      entries: Object.entries(value).map(([name, item]) => [name, factOf(item)] as const),
    }
  return typeof value === 'string' || typeof value === 'number' || typeof value === 'boolean'
    ? value
    : null
}

/** Of a run that has none: its tables and answers for people, which are all that is known of it. */
function factsFrom({ tables, state, outcomes, digest }: Run): Facts {
  const texts = digest === '' ? [] : (JSON.parse(digest) as string[]).slice(1)
  return {
    span: { from: 0, to: 0 },
    tables:
      tables.length === 0
        ? [{ name: 'state', columns: ['text'], rows: [[{ kind: 'text', parts: [state] }]] }]
        : tables,
    ends: outcomes.map((outcome, flow) => {
      if (outcome.kind !== 'threw') return texts[flow] ?? outcome.kind
      const { sqlstate, name, message } = outcome
      return sqlstate === undefined ? `threw ${name}: ${message}` : `threw ${sqlstate}`
    }),
  }
}
