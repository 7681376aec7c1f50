import type { Answer, Touch, TouchMode } from '../../core/model.ts'
import type { Catalogue, Relation } from '../catalogue/catalogue.ts'
import type { Held } from './held.ts'
import { cascades, type Names } from '../statement/names.ts'
import type { StatementShape } from '../statement/statement-shape.ts'

/** What one statement did, told from the locks before and after it and from its text. */
export interface Touched {
  readonly touches: readonly Touch[]
  /** Objects that it wrote, or may have written. */
  readonly writes: readonly string[]
  /** What the commit may do once more: checks that were put off until then. */
  readonly deferred: readonly Touch[]
  /** The text names all that it touches but for foreign keys: see `Names`. */
  readonly plain: boolean
}

/** An advisory lock that was asked for and not got: nobody tells its key, so it may be any. */
const anyAdvisory = 'advisory '

export function advisoryObject(key: string): string {
  return `advisory #${key}`
}

export function callsAdvisory(shape: StatementShape): boolean {
  return [...shape.calls].some((call) => call.includes('advisory'))
}

/** From what the session holds now, and held before. */
export function observedTouches(
  shape: StatementShape,
  { plain, target: found, reads }: Names,
  catalogue: Catalogue,
  before: Held,
  after: Held,
): Touched {
  const named = new Set(reads.map(({ object }) => object))
  const target = plain ? found : undefined
  const touches: Touch[] = []
  const writes: string[] = []

  for (const [object, modes] of after.relations) {
    const fresh = [...modes].filter((mode) => !before.relations.get(object)?.has(mode))
    // A lock from before does not tell whether this statement used it: the text must, or all count.
    let counted = plain ? fresh : [...modes]
    if (target && object === target.object) {
      touches.push(...writeTouches(shape, target, before, after))
      writes.push(object)
      if (named.has(object)) touches.push({ object, mode: 'read' })
      counted = fresh.filter((mode) => isStrong(mode))
    } else if (target?.parents.has(object) && !named.has(object)) {
      if (modes.has('RowShareLock')) touches.push({ object, mode: 'key-share' })
      counted = fresh.filter((mode) => mode !== 'RowShareLock')
    } else if (plain && named.has(object) && shape.writesSeveral) {
      counted = [...modes]
    } else if (plain && named.has(object)) {
      const locks = shape.lockingRead && modes.has('RowShareLock')
      touches.push({ object, mode: locks ? 'lock' : 'read' })
    } else if (plain && shape.writesSeveral) {
      counted = [...modes]
    }
    for (const mode of counted) {
      touches.push({ object, mode: asTouch(mode) })
      if (isWrite(mode)) writes.push(object)
    }
    const tried = shape.attempt && shape.lockingRead && modes.has('RowShareLock')
    if (tried && (!plain || named.has(object))) touches.push({ object, mode: 'attempt' })
  }
  if (target) addReached(shape, target, touches, writes, after)
  touches.push(...advisoryTouches(shape, before, after))
  return finished(touches, writes, catalogue, plain)
}

/** What foreign keys of other tables do: of those that are locked, or of all if that is not known. */
function addReached(
  shape: StatementShape,
  target: Relation,
  touches: Touch[],
  writes: string[],
  held?: Held,
): void {
  if (!cascades(shape, target)) return
  const { touched, written, checked } = target.reach
  const meets = (object: string): boolean => !held || held.relations.has(object)
  for (const object of touched) if (meets(object)) touches.push({ object, mode: 'lock' })
  for (const object of checked) if (meets(object)) touches.push({ object, mode: 'key-share' })
  writes.push(...[...written].filter(meets))
}

function isStrong(mode: string): boolean {
  return asTouch(mode) === 'exclusive'
}

function isWrite(mode: string): boolean {
  return mode !== 'AccessShareLock' && mode !== 'RowShareLock'
}

function asTouch(mode: string): TouchMode {
  if (mode === 'AccessShareLock') return 'read'
  return mode === 'RowShareLock' || mode === 'RowExclusiveLock' ? 'lock' : 'exclusive'
}

/** From the text alone: of a statement that failed, and whose locks are therefore gone. */
export function foretoldTouches(
  shape: StatementShape,
  names: Names,
  catalogue: Catalogue,
  waitedFor: Held,
): Touched | undefined {
  const { plain, target, reads } = names
  // LOCK TABLE and TRUNCATE reach further by views, triggers and CASCADE.
  const locks = shape.kind === 'lock' && names.fixed && !shape.cascade
  if (!plain && !(locks && reads.every(({ active }) => !active))) return undefined
  // Which of several writes meets which table nobody has told apart.
  if (shape.writesSeveral && reads.some(hasForeignKeys)) return undefined
  const touches: Touch[] = []
  const writes: string[] = []
  for (const { object } of reads) {
    if (locks) touches.push({ object, mode: 'exclusive' })
    else if (shape.writesSeveral || shape.lockingRead) touches.push({ object, mode: 'lock' })
    else touches.push({ object, mode: 'read' })
    if (shape.writesSeveral) writes.push(object)
    if (shape.attempt) touches.push({ object, mode: 'attempt' })
  }
  if (target) {
    touches.push(...writeTouches(shape, target, waitedFor, waitedFor))
    for (const parent of target.parents) touches.push({ object: parent, mode: 'key-share' })
    writes.push(target.object)
    addReached(shape, target, touches, writes)
  }
  for (const [key, shared] of waitedFor.advisory) touches.push(advisory(key, shared))
  if (callsAdvisory(shape) && waitedFor.advisory.size === 0) {
    touches.push({ object: anyAdvisory, mode: shape.attempt ? 'attempt' : 'exclusive' })
  }
  return finished(touches, writes, catalogue, plain)
}

function hasForeignKeys({ parents, referenced }: Relation): boolean {
  return parents.size > 0 || referenced.size > 0
}

function finished(
  touches: Touch[],
  writes: readonly string[],
  catalogue: Catalogue,
  plain: boolean,
): Touched {
  const written = new Set(writes)
  const deferred: Touch[] = []
  for (const relation of catalogue.relations.values()) {
    if (!relation.deferred || !written.has(relation.object)) continue
    deferred.push({ object: relation.object, mode: 'lock' })
    for (const parent of relation.parents) deferred.push({ object: parent, mode: 'key-share' })
    for (const object of relation.reach.touched) deferred.push({ object, mode: 'lock' })
  }
  return { touches: unique(touches), writes: [...written], deferred: unique(deferred), plain }
}

function writeTouches(shape: StatementShape, target: Relation, before: Held, after: Held): Touch[] {
  const { object } = target
  if (shape.write !== 'insert' || shape.onConflict) {
    // A key that an UPDATE sets may meet the one of an INSERT, committed or not; `lock` says so.
    return [{ object, mode: 'lock' }]
  }
  const drawn = (column: string): boolean => {
    const source = target.generated.get(column)
    if (source === undefined) return false
    if (shape.columns && !shape.columns.includes(column)) return true
    // That one row of several has drawn it says nothing of the others.
    const columns = shape.columns ?? [...target.columns.keys()]
    if (!shape.drawn.has(columns.indexOf(column))) return false
    return source !== 'random' && after.sequences.has(source) && !before.sequences.has(source)
  }
  const apart = target.uniques.every((columns) => columns.some(drawn))
  return [{ object, mode: apart ? 'append' : 'insert' }]
}

function advisoryTouches(shape: StatementShape, before: Held, after: Held): Touch[] {
  const touches: Touch[] = []
  for (const [key, shared] of after.advisory) {
    if (before.advisory.has(key)) continue
    touches.push(advisory(key, shared))
    if (shape.attempt) touches.push({ object: advisoryObject(key), mode: 'attempt' })
  }
  if (shape.attempt && callsAdvisory(shape) && touches.length === 0) {
    touches.push({ object: anyAdvisory, mode: 'attempt' })
  }
  return touches
}

function advisory(key: string, shared: boolean): Touch {
  // Shared ones exclude only the others, as a key-share does.
  return { object: advisoryObject(key), mode: shared ? 'key-share' : 'exclusive' }
}

function unique(touches: readonly Touch[]): Touch[] {
  const seen = new Set<string>()
  return touches.filter(({ object, mode }) => {
    const key = `${mode} ${object}`
    return !seen.has(key) && seen.add(key)
  })
}

/** An UPDATE of no row, an INSERT of none. */
export function touchedNothing(shape: StatementShape, { tag = '' }: Answer): boolean {
  if (shape.writesSeveral) return false
  const counted = shape.target === undefined ? shape.lockingRead : true
  return (
    counted &&
    /^(INSERT 0|UPDATE|DELETE|MERGE|SELECT) 0$/.test(tag) &&
    (shape.target === undefined || !tag.startsWith('SELECT'))
  )
}
