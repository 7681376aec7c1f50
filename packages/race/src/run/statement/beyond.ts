/**
 * What a statement can see or do that no lock of its session tells: other sessions as they are at this moment, other
 * databases, sequences, large objects. Such a step depends on everything, and no order is proven by it.
 */
import type { Catalogue } from '../catalogue/catalogue.ts'
import { bodyOf, type Routine } from './routine.ts'
import { shapeOf, type StatementShape, type TableName } from './statement-shape.ts'

/** Columns of `pg_class` that say how a table is stored: they change without a row of the catalogue being new. */
const stored = [
  'relpages',
  'reltuples',
  'relallvisible',
  'relfilenode',
  'relfrozenxid',
  'relminmxid',
]

/** Something that no lock tells. */
export interface Beyond {
  /** In words for a note: `pg_locks`. */
  readonly what: string
  /** A function or a trigger looks at it, and not the statement itself. */
  readonly isInside: boolean
}

/** What it looks at, also by what it runs inside if that is asked for; undefined if its locks tell all. */
export function beyond(
  shape: StatementShape,
  catalogue: Catalogue,
  orInside: boolean,
): Beyond | undefined {
  const own = beyondItself(shape, catalogue)
  if (own !== undefined) return { what: own, isInside: false }
  const inside = orInside ? beyondInside(shape, catalogue) : undefined
  return inside === undefined ? undefined : { what: inside, isInside: true }
}

function beyondItself(shape: StatementShape, catalogue: Catalogue): string | undefined {
  const call = [...shape.calls].find((name) => catalogue.open.functions.has(name))
  if (call !== undefined) return `${call}()`
  const views = shape.reads.filter(
    ({ schema, name }) => isServers(schema) && catalogue.open.views.has(name),
  )
  // Who asks for its own session only sees what it has done itself.
  if (views.length > shape.ownLooks) return views[0]?.name
  // The star has no name.
  const column = [...stored, ''].find((name) => shape.columnNames.has(name))
  const isOfTables = shape.reads.some(
    ({ schema, name }) => isServers(schema) && name === 'pg_class',
  )
  if (isOfTables && column !== undefined) return `pg_class.${column || '*'}`
  return shape.reads.find((read) => isSequence(read, catalogue))?.name
}

/** Functions and triggers that it runs itself, by bare name. */
export function routinesOf(shape: StatementShape, catalogue: Catalogue): readonly string[] {
  return [...shape.calls, ...unnamed(shape, catalogue)].filter((name) =>
    catalogue.routines.has(name),
  )
}

/** The same of the functions and triggers that it runs. */
export function beyondInside(shape: StatementShape, catalogue: Catalogue): string | undefined {
  return inRoutines([...shape.calls, ...unnamed(shape, catalogue)], catalogue)
}

function isServers(schema: string | undefined): boolean {
  return schema === undefined || schema === 'pg_catalog'
}

function isSequence({ schema, name }: TableName, { named }: Catalogue): boolean {
  const found = named.get(name) ?? []
  return found.some(
    (one) => one.kind === 'sequence' && (schema === undefined || schema === one.schema),
  )
}

/** Functions that run with it unnamed: of the table that it writes, and of views and policies of what it reads. */
function unnamed({ target, reads }: StatementShape, { named }: Catalogue): readonly string[] {
  const written = target ? (named.get(target.name) ?? []) : []
  const read = reads.flatMap(({ name }) => named.get(name) ?? [])
  return [
    ...written.flatMap(({ calls }) => calls),
    ...read.flatMap(({ calls }) => calls.filter(({ type }) => type === 0)),
  ].flatMap(({ name }) => name ?? [])
}

/** The code that these run, and what that calls. */
function inRoutines(open: string[], catalogue: Catalogue): string | undefined {
  for (const [name, routines] of reached(open, catalogue)) {
    if (catalogue.open.functions.has(name)) return `${name}()`
    for (const routine of routines) {
      const far = farIn(routine, catalogue)
      if (far !== undefined) return `${far} in ${name}()`
    }
  }
  return undefined
}

/** What can be read of the functions and triggers that a statement runs, and of what these call. */
export function* codeInside(shape: StatementShape, catalogue: Catalogue): Generator<string> {
  for (const [, routines] of reached([...shape.calls, ...unnamed(shape, catalogue)], catalogue))
    for (const { body } of routines) if (body !== null) yield body
}

function* reached(
  open: string[],
  catalogue: Catalogue,
): Generator<readonly [name: string, routines: readonly Routine[]]> {
  const seen = new Set<string>()
  for (let name = open.pop(); name !== undefined; name = open.pop()) {
    if (seen.has(name)) continue
    seen.add(name)
    const routines = catalogue.routines.get(name) ?? []
    yield [name, routines]
    for (const { body, defaults } of routines) {
      open.push(...defaults)
      if (body !== null) open.push(...namesIn(body, catalogue))
    }
  }
}

/** Where a statement of it is made at run time, the words of the whole text tell. */
function farIn(routine: Routine, catalogue: Catalogue): string | undefined {
  for (const text of bodyOf(routine).statements) {
    const far =
      text === undefined
        ? inWords(routine.body ?? '', catalogue)
        : beyondItself(shapeOf(text), catalogue)
    if (far !== undefined) return far
  }
  return undefined
}

/** In the text of a function, where names are not told apart from other words. */
function inWords(body: string, { open }: Catalogue): string | undefined {
  const words = body.toLowerCase().match(/[\w$]+/g) ?? []
  return words.find(
    (word) => open.functions.has(word) || open.views.has(word) || word === 'last_value',
  )
}

const mentioned = new WeakMap<Catalogue, Map<string, readonly string[]>>()

/** Routines whose names stand in this text. */
function namesIn(body: string, catalogue: Catalogue): readonly string[] {
  const memory = mentioned.get(catalogue) ?? new Map<string, readonly string[]>()
  mentioned.set(catalogue, memory)
  let names = memory.get(body)
  if (!names) {
    const words = new Set(body.toLowerCase().match(/[\w$]+/g) ?? [])
    names = [...catalogue.routines.keys()].filter((name) => words.has(name.toLowerCase()))
    memory.set(body, names)
  }
  return names
}
