/**
 * The statements that the server runs inside of one: in functions, in triggers, in a DO block. At READ COMMITTED each has
 * a snapshot of its own, and locks are taken one after the other, so others may act in between. The gate does not stand
 * there; the search says what that costs.
 */
import type { Footprint, Touch } from '../core/model.ts'
import type { Settlement } from '../gate/unit.ts'
import type { Catalogue, Relation } from './catalogue.ts'
import { nothingHeld } from './held.ts'
import { resolveNames } from './names.ts'
import { type Body, bodyOf, bodyOfPlPgSql } from './routine.ts'
import { shapeOf, type StatementShape } from './statement-shape.ts'
import { foretoldTouches, type Touched } from './touches.ts'

/** What one of them touches; undefined if its text does not tell. */
type Part = readonly Touch[] | undefined

/** What code runs, to whoever calls it. */
interface Code {
  /** One after the other, each with a snapshot of its own. */
  readonly parts: readonly Part[]
  /** Under the snapshot of the statement that calls it. */
  readonly under: Part
  /** It goes on after errors: what was undone then has no locks any more that would tell of it. */
  readonly catches: boolean
}

/** What a statement runs inside. */
interface Inside {
  readonly parts: readonly Part[]
  /** What it may have touched and has no locks for any more; undefined if that may be anything. */
  readonly forgotten: Part
  /** What it touched as it began, beside its first part. */
  readonly first: readonly Touch[]
}

export const nothingInside: Inside = { parts: [], forgotten: [], first: [] }

const nothing: Code = { parts: [], under: [], catches: false }

/** More of them tell nothing new. */
const mostParts = 40

const remembered = new WeakMap<Catalogue, Map<string, Code>>()

/** What a statement that came back has run. */
export function lookInside(
  { unit, answer }: Settlement,
  shape: StatementShape,
  touched: Touched,
  catalogue: Catalogue,
): Inside {
  const [text = ''] = unit.statements
  const called = codeOfAll(namesIn(shape, catalogue), catalogue, [])
  const block = shape.verb === 'do' ? codeOfBody(bodyOfPlPgSql(text), true, catalogue, []) : nothing
  const isOneRow = answer.rowCount === 1 && !shape.writesSeveral
  const { before, after } = codeOfTables(shape, touched, catalogue, isOneRow)
  const isOnce = shape.callsOnce && answer.rowCount <= 1
  const calls = isOnce ? called.parts : [...called.parts, ...called.parts]
  const inner = [...before.parts, ...calls, ...block.parts, ...after.parts]
  const all = [called, block, before, after]
  const forgotten = all.some(({ catches }) => catches)
    ? merged([...inner, ...all.map(({ under }) => under)])
    : []
  const own = merged([partOf(shape, catalogue), called.under, before.under, after.under])
  // Rows are written, or locked, after what is called for them.
  const again = own?.every(({ mode }) => mode === 'read') === true ? [] : [own]
  const parts = [own, ...inner, ...(before.parts.length + calls.length > 0 ? again : [])]
  const first = touched.touches.filter(({ object }) => object === '*')
  return { parts: inner.length === 0 ? [] : parts.map(withKeysOf(touched)), forgotten, first }
}

/** Of those that touch anything, if there are two; `seen` is what the whole statement was seen to touch. */
export function partsOf(
  { parts, forgotten, first: snapshot }: Inside,
  isolation: Footprint['isolation'],
  seen: readonly Touch[],
): readonly Footprint[] | undefined {
  // What is not known is among what was seen, unless that is not all.
  const whole = forgotten === undefined || forgotten.length > 0 ? undefined : seen
  const [first, ...rest] = parts
    .map((part) => part ?? whole)
    .filter((part) => part === undefined || part.length > 0)
    .map((part) => asFootprint(part, isolation))
  if (!first || rest.length === 0) return undefined
  return [{ ...first, touches: [...first.touches, ...snapshot] }, ...rest]
}

export function asFootprint(part: Part, isolation: Footprint['isolation']): Footprint {
  return { opaque: part === undefined, touches: part ?? [], isolation }
}

function merged(parts: readonly Part[]): Part {
  return parts.includes(undefined) ? undefined : parts.flatMap((part) => part ?? [])
}

function joined(codes: readonly Code[]): Code {
  return {
    parts: codes.flatMap(({ parts }) => parts),
    under: merged(codes.map(({ under }) => under)),
    catches: codes.some(({ catches }) => catches),
  }
}

/** Code of the user's that a statement names, or meets without naming it. */
function namesIn({ calls, operators, columnNames }: StatementShape, { code }: Catalogue): string[] {
  return [
    ...calls,
    ...[...operators].filter((operator) => code.operator.has(operator)),
    ...[...columnNames].filter((column) => code.attribute.has(column)),
    ...code.conversion,
  ]
}

/** Code that the tables run which it uses. */
function codeOfTables(
  shape: StatementShape,
  touched: Touched,
  catalogue: Catalogue,
  isOneRow: boolean,
): { readonly before: Code; readonly after: Code } {
  const writes = new Set(touched.writes)
  const used = new Set([...writes, ...touched.touches.map(({ object }) => object)])
  const named = new Set(
    [...shape.reads, ...(shape.target ? [shape.target] : [])].map(({ name }) => name),
  )
  const before: Code[] = []
  const after: Code[] = []
  const seen = new Set<string>()
  for (const { object, name: own, kind, calls } of catalogue.relations.values()) {
    if (calls.length === 0 || seen.has(object)) continue
    if (!used.has(object) && !(kind === 'other' && named.has(own))) continue
    seen.add(object)
    for (const { name, type } of calls) {
      const isTarget = own === shape.target?.name
      if (type !== 0 && !writes.has(object) && !isTarget) continue
      if (type !== 0 && isTarget && (type & eventsOf(shape)) === 0) continue
      const code = codeOf(name, catalogue, [])
      const isOnce = (type & allEvents) !== 0 && ((type & ofRow) === 0 || (isTarget && isOneRow))
      const run = isOnce ? code : { ...code, parts: [...code.parts, ...code.parts] }
      if ((type & beforeRow) === 0) after.push(run)
      else before.push(run)
    }
  }
  return { before: joined(before), after: joined(after) }
}

/** Bits of `CalledRow.type`. */
const ofRow = 1
const beforeRow = 2
const allEvents = 4 | 8 | 16

function eventsOf({ write, onConflict }: StatementShape): number {
  if (write === 'insert') return onConflict ? 4 | 16 : 4
  if (write === 'delete') return 8
  return write === 'update' ? 16 : allEvents
}

const mayBeAnything: Code = { parts: [undefined, undefined], under: [], catches: true }

function codeOfAll(names: readonly string[], catalogue: Catalogue, path: readonly string[]): Code {
  return joined(names.map((name) => codeOf(name, catalogue, path)))
}

/** Of a routine; of a rule, which has no name, nobody knows. */
function codeOf(name: string | null, catalogue: Catalogue, path: readonly string[]): Code {
  if (name === null) return { ...mayBeAnything, catches: false }
  const routines = catalogue.routines.get(name)
  if (!routines) return nothing
  if (path.includes(name)) return mayBeAnything
  const memory = remembered.get(catalogue) ?? new Map<string, Code>()
  remembered.set(catalogue, memory)
  let code = memory.get(name)
  if (!code) {
    // Of several functions of one name any may be meant.
    code = joined(
      routines.map((routine) =>
        codeOfBody(bodyOf(routine), routine.volatile, catalogue, [...path, name]),
      ),
    )
    // Inside of a circle it is not the whole.
    if (path.length === 0) memory.set(name, code)
  }
  return code
}

/** A function that is not volatile sees what its caller sees, and writes nothing; what it calls may do otherwise. */
function codeOfBody(
  { statements, catches }: Body,
  volatile: boolean,
  catalogue: Catalogue,
  path: readonly string[],
): Code {
  const parts: Part[] = []
  const under: Part[] = []
  const inside: Code[] = []
  for (const text of statements) {
    if (parts.length > mostParts) return { ...mayBeAnything, catches }
    const code = text === undefined ? undefined : codeOfInner(shapeOf(text), catalogue, path)
    if (code) inside.push(code)
    if (volatile) parts.push(code?.under, ...(code?.parts ?? []))
    else {
      under.push(code?.under)
      parts.push(...(code?.parts ?? []))
    }
  }
  const goesOn = catches || inside.some((code) => code.catches)
  return { parts: parts.filter(touchesAny), under: merged(under), catches: goesOn }
}

function touchesAny(part: Part): boolean {
  return part === undefined || part.length > 0
}

/** What a statement of a body does itself, `under` one snapshot, and what comes after that. */
function codeOfInner(shape: StatementShape, catalogue: Catalogue, path: readonly string[]): Code {
  const called = codeOfAll(namesIn(shape, catalogue), catalogue, path)
  const calls = shape.callsOnce ? called.parts : [...called.parts, ...called.parts]
  const isQuery = shape.kind === 'query' || shape.kind === 'lock'
  const triggered = isQuery ? triggeredBy(shape, catalogue, path) : nothing
  const own = isQuery ? partOf(shape, catalogue) : ownOf(shape)
  const under = merged([own, called.under, triggered.under])
  const inner = [...calls, ...triggered.parts]
  const again = inner.length > 0 && under?.every(({ mode }) => mode === 'read') !== true
  return {
    under,
    parts: again ? [...inner, under] : inner,
    catches: called.catches || triggered.catches,
  }
}

/** Settings, comments alone and the call of a procedure touch nothing themselves; of the rest nobody knows. */
function ownOf({ kind, verb, residue }: StatementShape): Part {
  const isNothing = verb === '' && residue === undefined
  return kind !== 'unknown' || verb === 'call' || isNothing ? [] : undefined
}

/** How many rows a statement inside meets nobody tells: but for one row that is inserted, what it triggers runs twice. */
function triggeredBy(shape: StatementShape, catalogue: Catalogue, path: readonly string[]): Code {
  const targets = shape.target ? (catalogue.named.get(shape.target.name) ?? []) : []
  const events = eventsOf(shape)
  const isOne = shape.write === 'insert' && shape.rows !== undefined
  const code = joined(
    targets.flatMap(({ calls }) =>
      calls
        .filter(({ type }) => type === 0 || (type & events) !== 0)
        .map(({ name }) => codeOf(name, catalogue, path)),
    ),
  )
  return isOne ? code : { ...code, parts: [...code.parts, ...code.parts] }
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
