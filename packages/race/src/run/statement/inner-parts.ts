/**
 * The statements that the server runs inside of one: in functions, in triggers, in a DO block. At READ COMMITTED each has
 * a snapshot of its own, and locks are taken one after the other, so others may act in between. The gate does not stand
 * there; the search says what that costs.
 */
import type { Footprint, Touch } from '../../core/model.ts'
import { functionCallText, type Settlement } from '../../gate/unit.ts'
import type { Catalogue, Relation } from '../catalogue/catalogue.ts'
import { type Code, joined, mayBeAnything, merged, nothing, type Part, touchesAny } from './code.ts'
import { nothingHeld } from '../footprint/held.ts'
import { cascades, resolveNames, runsText } from './names.ts'
import { type Body, bodyOf, bodyOfPlPgSql } from './routine.ts'
import { shapeOf, type StatementShape } from './statement-shape.ts'
import { observable } from './open-statements.ts'
import { givesKey } from '../footprint/row-object.ts'
import { foretoldTouches, type Touched } from '../footprint/touches.ts'

/** What a statement runs inside. */
export interface Inside {
  readonly parts: readonly Part[]
  /** What it may have touched and has no locks for any more; undefined if that may be anything. */
  readonly forgotten: Part
  /** What it touched as it began, beside its first part. */
  readonly first: readonly Touch[]
  /** As `Code.leaves`. */
  readonly leaves: boolean
}

export const nothingInside: Inside = { parts: [], forgotten: [], first: [], leaves: false }
export const anythingInside: Inside = {
  parts: [undefined, undefined],
  forgotten: undefined,
  first: [],
  leaves: true,
}

/** More of them tell nothing new. */
const mostParts = 40

const remembered = new WeakMap<Catalogue, Map<string, Code>>()

/** What a session has prepared, by name. */
export type PreparedShapes = ReadonlyMap<string, StatementShape>

/** What a statement that came back has run. */
export function lookInside(
  { unit, answer }: Settlement,
  sent: StatementShape,
  touched: Touched,
  catalogue: Catalogue,
  prepared: PreparedShapes,
): Inside {
  // What it runs is run by EXECUTE.
  if (sent.prepares) return nothingInside
  const [text = ''] = unit.statements
  const isUnread = sent.verb === '' && sent.residue !== undefined
  if (isUnread || text === functionCallText) return anythingInside
  const executed = sent.executes === undefined ? undefined : prepared.get(sent.executes)
  const shape = executed ?? sent
  // What it tells others is told by its COMMIT.
  const silent = new Set([...shape.calls].filter((name) => name !== 'pg_notify'))
  const own = partOf({ ...shape, calls: silent }, catalogue)
  const called = joined([
    codeOfAll(namesIn(sent, catalogue), catalogue, []),
    ...(executed ? [codeOfAll(namesIn(executed, catalogue), catalogue, [])] : []),
    // Prepared where nobody saw it: in a function, or by the client's protocol.
    ...(sent.executes !== undefined && !executed ? [mayBeAnything] : []),
    ...(isDdl(sent) ? [codeOfAll([...catalogue.code.event], catalogue, [])] : []),
  ])
  const block = sent.verb === 'do' ? codeOfBody(bodyOfPlPgSql(text), true, catalogue, []) : nothing
  const { before, after } = codeOfTables(shape, touched, catalogue, isOfOneRow(answer, shape))
  const isOnce = sent.callsOnce && shape.callsOnce && answer.rowCount <= 1
  // Nobody sees in a text how many values it converts.
  const converted = codeOfAll([...catalogue.code.conversion], catalogue, [])
  const calls = isOnce ? [...called.parts, ...converted.parts] : [...called.parts, ...called.parts]
  const inner = [...before.parts, ...calls, ...block.parts, ...after.parts]
  const all = [called, block, before, after]
  const forgotten = all.some(({ catches }) => catches)
    ? merged([...inner, ...all.map(({ under }) => under)])
    : []
  const whole = merged([own, called.under, before.under, after.under])
  // Rows are written, or locked, after what is called for them.
  const again = whole?.every(({ mode }) => mode === 'read') === true ? [] : [whole]
  const parts = [whole, ...inner, ...(before.parts.length + calls.length > 0 ? again : [])]
  const first = touched.touches.filter(({ object }) => object === '*')
  return {
    parts: inner.length === 0 ? [] : parts.map(withKeysOf(touched)),
    forgotten,
    first,
    leaves: all.some(({ leaves }) => leaves),
  }
}

/** The same of a statement whose locks nobody saw: by the names in it alone. */
export function lookInsideUnseen(
  settlement: Settlement,
  shape: StatementShape,
  catalogue: Catalogue,
  prepared: PreparedShapes,
): Inside {
  const meant = prepared.get(shape.executes ?? '') ?? shape
  const named = [...meant.reads, ...(meant.target ? [meant.target] : [])]
  const tables = named.flatMap(({ name }) => catalogue.named.get(name) ?? [])
  const targets = catalogue.named.get(meant.target?.name ?? '') ?? []
  const touched: Touched = {
    touches: tables.map(({ object }) => ({ object, mode: 'lock' })),
    writes: (meant.writesSeveral ? tables : targets).map(({ object }) => object),
    deferred: [],
    plain: false,
  }
  const inside = lookInside(settlement, shape, touched, catalogue, prepared)
  const reaches = targets.some((target) => cascades(meant, target) && target.reach.active)
  // What a view, a policy or a rule reads has code of its own.
  const isOpen = reaches || tables.some(({ indirect }) => indirect)
  if (!isOpen) return inside
  return { ...anythingInside, leaves: inside.leaves || anyLeaves(catalogue) }
}

/** Whether there is any routine that may leave something in a session. */
function anyLeaves(catalogue: Catalogue): boolean {
  return [...catalogue.routines.keys()].some((name) => codeOf(name, catalogue, []).leaves)
}

/** What the COMMIT runs for rows that were written: triggers that may be put off until then. */
export function putOffBy(
  writes: readonly string[],
  isOneRow: boolean,
  catalogue: Catalogue,
): readonly Part[] {
  const written = new Set(writes)
  const names = new Set(
    [...catalogue.relations.values()]
      .filter(({ object }) => written.has(object))
      .flatMap(({ calls }) => calls.filter(({ late }) => late).map(({ name }) => name)),
  )
  const parts = [...names].flatMap((name) => {
    const code = codeOf(name, catalogue, [])
    return code.catches ? [undefined, undefined] : [code.under, ...code.parts].filter(touchesAny)
  })
  return isOneRow ? parts : [...parts, ...parts]
}

/** One row at most is written, and its triggers run once. */
export function isOfOneRow(
  { rowCount, error }: Settlement['answer'],
  { verb, write, rows, writesSeveral }: StatementShape,
): boolean {
  // The rows that were counted may be others: WITH … INSERT … SELECT.
  if (writesSeveral || verb !== write) return false
  return rowCount === 1 || (error !== undefined && write === 'insert' && rows !== undefined)
}

/** Not a query, and not one of those that run one: event triggers are for these. */
function isDdl({ kind, verb }: StatementShape): boolean {
  return kind === 'unknown' && !observable.has(verb)
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
  for (const relation of catalogue.relations.values()) {
    const { object, name: own, kind, calls } = relation
    if (calls.length === 0 || seen.has(object)) continue
    if (!used.has(object) && !(kind === 'other' && named.has(own))) continue
    seen.add(object)
    // A cascade that comes back is another statement on the table.
    const comesBack = cascades(shape, relation) && relation.reach.written.has(object)
    const isAlone = !shape.writesSeveral && !comesBack
    const ofOne = isAlone && isOneRow && meetsOne(shape, relation)
    for (const { name, type } of calls) {
      const isTarget = own === shape.target?.name
      if (type !== 0 && !writes.has(object) && !isTarget) continue
      if (type !== 0 && isTarget && (type & eventsOf(shape)) === 0) continue
      const code = codeOf(name, catalogue, [])
      const isOnce =
        isTarget && (type & allEvents) !== 0 && ((type & ofRow) === 0 ? isAlone : ofOne)
      const run = isOnce ? code : { ...code, parts: [...code.parts, ...code.parts] }
      if ((type & beforeRow) === 0) after.push(run)
      else before.push(run)
    }
  }
  return { before: joined(before), after: joined(after) }
}

/** Code that comes before a row is written may have been run for others, which were not. */
function meetsOne(shape: StatementShape, relation: Relation): boolean {
  if (shape.onConflict) return false
  if (shape.write === 'insert' && shape.rows !== undefined) return true
  return givesKey(shape, relation) || relation.calls.every(({ type }) => (type & beforeRow) === 0)
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

function codeOfAll(names: readonly string[], catalogue: Catalogue, path: readonly string[]): Code {
  return joined(names.map((name) => codeOf(name, catalogue, path)))
}

/** Of a routine; of a rule, which has no name, nobody knows. */
function codeOf(name: string | null, catalogue: Catalogue, path: readonly string[]): Code {
  if (name === null) return { ...mayBeAnything, catches: false, leaves: false }
  const routines = catalogue.routines.get(name)
  if (!routines) return runsText.test(name) ? mayBeAnything : nothing
  if (path.includes(name)) return mayBeAnything
  const memory = remembered.get(catalogue) ?? new Map<string, Code>()
  remembered.set(catalogue, memory)
  let code = memory.get(name)
  if (!code) {
    // Of several functions of one name any may be meant.
    code = joined(
      routines.flatMap((routine) => [
        codeOfAll(routine.defaults, catalogue, [...path, name]),
        codeOfBody(bodyOf(routine), routine.volatile, catalogue, [...path, name]),
      ]),
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
  return {
    parts: parts.filter(touchesAny),
    under: merged(under),
    catches: catches || inside.some((code) => code.catches),
    leaves: statements.includes(undefined) || inside.some((code) => code.leaves),
  }
}

/** What a statement of a body does itself, `under` one snapshot, and what comes after that. */
function codeOfInner(shape: StatementShape, catalogue: Catalogue, path: readonly string[]): Code {
  const called = codeOfAll(namesIn(shape, catalogue), catalogue, path)
  const converted = codeOfAll([...catalogue.code.conversion], catalogue, path)
  const calls = shape.callsOnce
    ? [...called.parts, ...converted.parts]
    : [...called.parts, ...called.parts]
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
    leaves: shape.residue !== undefined || called.leaves || triggered.leaves,
  }
}

/** Settings, comments alone and the call of a procedure touch nothing themselves; of the rest nobody knows. */
function ownOf({ kind, verb, residue }: StatementShape): Part {
  const isNothing = verb === '' && residue === undefined
  return kind !== 'unknown' || verb === 'call' || isNothing ? [] : undefined
}

/** How many rows a statement inside meets nobody tells: but for one row that is inserted, what it triggers runs twice. */
function triggeredBy(shape: StatementShape, catalogue: Catalogue, path: readonly string[]): Code {
  const written = shape.writesSeveral ? shape.reads : shape.target ? [shape.target] : []
  const targets = written.flatMap(({ name }) => catalogue.named.get(name) ?? [])
  const events = eventsOf(shape)
  const isOne = shape.write === 'insert' && shape.rows !== undefined && !shape.onConflict
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
