/**
 * The statements that the server runs inside of one: in functions, in triggers, in a DO block. At READ COMMITTED each has
 * a snapshot of its own, and locks are taken one after the other, so others may act in between. The gate does not stand
 * there; the search says what that costs.
 */
import type { Footprint, Touch } from '../core/model.ts'
import type { Catalogue, Relation } from './catalogue.ts'
import { nothingHeld } from './held.ts'
import { resolveNames } from './names.ts'
import { type Inner, statementsIn, statementsInPlPgSql } from './routine.ts'
import { shapeOf, type StatementShape } from './statement-shape.ts'
import { foretoldTouches, type Touched } from './touches.ts'

/** What one of them touches; undefined if that is not known. */
type Part = readonly Touch[] | undefined

/** More of them tell nothing new. */
const mostParts = 40

const remembered = new WeakMap<Catalogue, Map<string, readonly Part[]>>()

/** The parts of a statement that came back; undefined if there is only one that touches anything. */
export function innerParts(
  text: string,
  shape: StatementShape,
  touched: Touched,
  isolation: Footprint['isolation'],
  catalogue: Catalogue,
): readonly Footprint[] | undefined {
  const calls = [...shape.calls].flatMap((name) => partsOfRoutine(name, catalogue, []))
  const block =
    shape.verb === 'do' ? partsOfAll(statementsInPlPgSql(text), true, catalogue, []) : []
  const { before, after } = partsOfTables(shape, touched, catalogue)
  const inner = [...calls, ...block, ...before, ...after]
  if (inner.length === 0) return undefined
  const own = ownPart(shape, touched, catalogue)
  const parts = [own, ...inner, ...(before.length > 0 ? [own] : [])].map(withKeysOf(touched))
  const [first, ...rest] = parts
    .filter((part) => part === undefined || part.length > 0)
    .map((part) => asFootprint(part, isolation))
  if (!first || rest.length === 0) return undefined
  const snapshot = touched.touches.filter(({ object }) => object === '*')
  return [{ ...first, touches: [...first.touches, ...snapshot] }, ...rest]
}

export function asFootprint(part: Part, isolation: Footprint['isolation']): Footprint {
  return { opaque: part === undefined, touches: part ?? [], isolation }
}

/** What it does itself. Triggers and functions aside, its text tells; else all that was seen counts. */
function ownPart(shape: StatementShape, touched: Touched, catalogue: Catalogue): Part {
  if (shape.target === undefined && shape.reads.length === 0) return []
  return partOf(shape, catalogue) ?? touched.touches
}

/** Code that the tables run which it uses. */
function partsOfTables(
  shape: StatementShape,
  touched: Touched,
  catalogue: Catalogue,
): { readonly before: readonly Part[]; readonly after: readonly Part[] } {
  const writes = new Set(touched.writes)
  const used = new Set([...writes, ...touched.touches.map(({ object }) => object)])
  const named = new Set(
    [...shape.reads, ...(shape.target ? [shape.target] : [])].map(({ name }) => name),
  )
  const before: Part[] = []
  const after: Part[] = []
  const seen = new Set<string>()
  for (const { object, name: own, kind, calls } of catalogue.relations.values()) {
    if (calls.length === 0 || seen.has(object)) continue
    if (!used.has(object) && !(kind === 'other' && named.has(own))) continue
    seen.add(object)
    for (const { name, type } of calls) {
      const isTarget = own === shape.target?.name
      if (type !== 0 && !writes.has(object) && !isTarget) continue
      if (type !== 0 && isTarget && (type & eventsOf(shape)) === 0) continue
      const parts = name === null ? [undefined, undefined] : partsOfRoutine(name, catalogue, [])
      if ((type & beforeRow) === 0) after.push(...parts)
      else before.push(...parts)
    }
  }
  return { before, after }
}

/** Bits of `CalledRow.type`. */
const beforeRow = 2
const allEvents = 4 | 8 | 16

function eventsOf({ write, onConflict }: StatementShape): number {
  if (write === 'insert') return onConflict ? 4 | 16 : 4
  if (write === 'delete') return 8
  return write === 'update' ? 16 : allEvents
}

function partsOfRoutine(
  name: string,
  catalogue: Catalogue,
  path: readonly string[],
): readonly Part[] {
  const routines = catalogue.routines.get(name)
  if (!routines) return []
  if (path.includes(name)) return [undefined, undefined]
  const memory = remembered.get(catalogue) ?? new Map<string, readonly Part[]>()
  remembered.set(catalogue, memory)
  let parts = memory.get(name)
  if (!parts) {
    // Of several functions of one name any may be meant.
    parts = routines.flatMap((routine) =>
      partsOfAll(statementsIn(routine), routine.volatile, catalogue, [...path, name]),
    )
    // Inside of a circle it is not the whole.
    if (path.length === 0) memory.set(name, parts)
  }
  return parts
}

/** Those of a function that is not volatile see what the caller sees, and write nothing; what they call may be. */
function partsOfAll(
  statements: readonly Inner[],
  volatile: boolean,
  catalogue: Catalogue,
  path: readonly string[],
): readonly Part[] {
  const parts: Part[] = []
  for (const text of statements) {
    if (parts.length > mostParts) return [...parts, undefined]
    if (text !== undefined) parts.push(...partsOfInner(shapeOf(text), volatile, catalogue, path))
    else if (volatile) parts.push(undefined)
  }
  return parts
}

function partsOfInner(
  shape: StatementShape,
  volatile: boolean,
  catalogue: Catalogue,
  path: readonly string[],
): readonly Part[] {
  const called = [...shape.calls].flatMap((name) => partsOfRoutine(name, catalogue, path))
  if (!volatile) return called
  const targets = shape.target ? (catalogue.named.get(shape.target.name) ?? []) : []
  const events = eventsOf(shape)
  const triggered = targets.flatMap(({ calls }) =>
    calls
      .filter(({ type }) => type === 0 || (type & events) !== 0)
      .flatMap(({ name }) =>
        name === null ? [undefined, undefined] : partsOfRoutine(name, catalogue, path),
      ),
  )
  if (shape.kind === 'query' || shape.kind === 'lock')
    return [partOf(shape, catalogue), ...called, ...triggered].filter(
      (part) => part === undefined || part.length > 0,
    )
  // Comments alone, and not a text that is not understood.
  const isNothing = shape.verb === '' && shape.residue === undefined
  const isKnown = shape.kind !== 'unknown' || shape.verb === 'call' || isNothing
  return isKnown ? called : [...called, undefined]
}

/** From its text, as if it ran nothing that is not named in it. */
function partOf(shape: StatementShape, catalogue: Catalogue): Part {
  const bare: StatementShape = {
    ...shape,
    calls: new Set([...shape.calls].filter((name) => !catalogue.routines.has(name))),
  }
  const names = resolveNames(bare, withoutCode(catalogue))
  return foretoldTouches(bare, names, catalogue, nothingHeld)?.touches
}

const bared = new WeakMap<Catalogue, Catalogue>()

/** The same tables without their triggers. */
function withoutCode(catalogue: Catalogue): Catalogue {
  let bare = bared.get(catalogue)
  if (!bare) {
    const calm = (relation: Relation): Relation => ({ ...relation, active: relation.indirect })
    const named = new Map([...catalogue.named].map(([name, all]) => [name, all.map(calm)]))
    bared.set(catalogue, (bare = { ...catalogue, named }))
  }
  return bare
}

/** An advisory lock whose key no text tells is one of those that were seen. */
function withKeysOf({ touches }: Touched): (part: Part) => Part {
  const keys = touches.filter(({ object }) => object.startsWith('advisory #'))
  if (keys.length === 0) return (part) => part
  return (part) => part?.flatMap((touch) => (touch.object === 'advisory ' ? keys : [touch]))
}
