import type { Touch, TouchMode } from '../core/model.ts'
import type { Catalogue, Relation } from './catalogue.ts'
import type { Held } from './held.ts'
import type { StatementShape } from './statement-shape.ts'

/** What one statement did, told from the locks before and after it and from its text. */
export interface Touched {
  readonly touches: readonly Touch[]
  /** Objects that it wrote, or may have written. */
  readonly writes: readonly string[]
  /** What the commit may do once more: checks that were put off until then. */
  readonly deferred: readonly Touch[]
}

/** An advisory lock that was asked for and not got: nobody tells its key, so it may be any. */
const anyAdvisory = 'advisory '

/**
 * Whether the text names everything that the statement reads and writes itself: no functions of the
 * user's, no view, no trigger. Foreign keys are the only thing that is touched without being named.
 */
export function isPlain(shape: StatementShape, catalogue: Catalogue): boolean {
  if (shape.kind !== 'query') return false
  for (const call of shape.calls) {
    if (reaching.test(call)) return false
    if (catalogue.functions.has(call) && !isTableName(call, catalogue)) return false
  }
  return namedRelations(shape, catalogue).every((relation) => !relation.active)
}

// Functions of the server that run SQL or reach into other sessions.
const reaching = /^(dblink|query_to_xml|cursor_to_xml|pg_terminate|pg_cancel|pg_notify|lo_)/

export function callsAdvisory(shape: StatementShape): boolean {
  return [...shape.calls].some((call) => call.includes('advisory'))
}

function isTableName(name: string, catalogue: Catalogue): boolean {
  return catalogue.named.has(name)
}

function namedRelations(shape: StatementShape, catalogue: Catalogue): Relation[] {
  return [...shape.names]
    .flatMap((name) => catalogue.named.get(name) ?? [])
    .filter((relation) => relation.kind === 'table' || relation.active)
}

/** From what the session holds now, and held before. */
export function observedTouches(
  shape: StatementShape,
  catalogue: Catalogue,
  before: Held,
  after: Held,
): Touched {
  const plain = isPlain(shape, catalogue)
  const named = new Set(namedRelations(shape, catalogue).map(({ object }) => object))
  const target = plain ? targetOf(shape, catalogue) : undefined
  const touches: Touch[] = []
  const writes: string[] = []

  for (const [object, modes] of after.relations) {
    const fresh = [...modes].filter((mode) => !before.relations.get(object)?.has(mode))
    // A lock from before does not tell whether this statement used it: the text must, or all count.
    let counted = plain ? fresh : [...modes]
    if (plain && object === target?.object) {
      touches.push(...writeTouches(shape, target, before, after))
      writes.push(object)
      if (shape.names.has('select') && modes.has('AccessShareLock')) {
        touches.push({ object, mode: 'read' })
      }
      counted = fresh.filter((mode) => isStrong(mode))
    } else if (plain && target?.parents.has(object) && !named.has(object)) {
      if (modes.has('RowShareLock')) touches.push({ object, mode: 'key-share' })
      counted = fresh.filter((mode) => mode !== 'RowShareLock')
    } else if (plain && named.has(object) && shape.writesSeveral) {
      counted = [...modes]
    } else if (plain && named.has(object)) {
      const locks = shape.lockingRead && modes.has('RowShareLock')
      touches.push({ object, mode: locks ? 'lock' : 'read' })
    }
    for (const mode of counted) {
      touches.push({ object, mode: asTouch(mode) })
      if (isWrite(mode)) writes.push(object)
    }
    const tried = shape.attempt && shape.lockingRead && modes.has('RowShareLock')
    if (tried && (!plain || named.has(object))) touches.push({ object, mode: 'attempt' })
  }
  touches.push(...advisoryTouches(shape, before, after))
  return finished(touches, writes, catalogue)
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
  catalogue: Catalogue,
  waitedFor: Held,
): Touched | undefined {
  if (shape.kind !== 'lock' && !isPlain(shape, catalogue)) return undefined
  const touches: Touch[] = []
  const writes: string[] = []
  const target = targetOf(shape, catalogue)
  for (const relation of namedRelations(shape, catalogue)) {
    const { object } = relation
    if (shape.kind === 'lock') touches.push({ object, mode: 'exclusive' })
    else if (relation === target) {
      touches.push(...writeTouches(shape, relation, waitedFor, waitedFor))
      for (const parent of relation.parents) touches.push({ object: parent, mode: 'key-share' })
      writes.push(object)
    } else if (shape.writesSeveral || shape.lockingRead) touches.push({ object, mode: 'lock' })
    else touches.push({ object, mode: 'read' })
    if (shape.attempt) touches.push({ object, mode: 'attempt' })
  }
  for (const [key, shared] of waitedFor.advisory) touches.push(advisory(key, shared))
  if (callsAdvisory(shape) && waitedFor.advisory.size === 0) {
    touches.push({ object: anyAdvisory, mode: shape.attempt ? 'attempt' : 'exclusive' })
  }
  return finished(touches, writes, catalogue)
}

function finished(touches: Touch[], writes: readonly string[], catalogue: Catalogue): Touched {
  const written = new Set(writes)
  const deferred: Touch[] = []
  for (const relation of catalogue.relations.values()) {
    if (!relation.deferred || !written.has(relation.object)) continue
    deferred.push({ object: relation.object, mode: 'lock' })
    for (const parent of relation.parents) deferred.push({ object: parent, mode: 'key-share' })
  }
  return { touches: unique(touches), writes: [...written], deferred: unique(deferred) }
}

function targetOf(shape: StatementShape, catalogue: Catalogue): Relation | undefined {
  if (shape.target === undefined || shape.writesSeveral) return undefined
  const found = catalogue.named.get(shape.target)?.filter(({ kind }) => kind === 'table')
  return found?.length === 1 ? found[0] : undefined
}

function writeTouches(shape: StatementShape, target: Relation, before: Held, after: Held): Touch[] {
  const { object } = target
  if (shape.verb !== 'insert' || shape.names.has('conflict')) {
    // A key that an UPDATE sets may meet the one of an INSERT, committed or not; `lock` says so.
    return [{ object, mode: 'lock' }]
  }
  const drawn = (column: string): boolean => {
    const source = target.generated.get(column)
    if (source === undefined) return false
    if (shape.columns && !shape.columns.includes(column)) return true
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
    if (shape.attempt) touches.push({ object: `advisory #${key}`, mode: 'attempt' })
  }
  if (shape.attempt && callsAdvisory(shape) && touches.length === 0) {
    touches.push({ object: anyAdvisory, mode: 'attempt' })
  }
  return touches
}

function advisory(key: string, shared: boolean): Touch {
  // Shared ones exclude only the others, as a key-share does.
  return { object: `advisory #${key}`, mode: shared ? 'key-share' : 'exclusive' }
}

function unique(touches: readonly Touch[]): Touch[] {
  const seen = new Set<string>()
  return touches.filter(({ object, mode }) => {
    const key = `${mode} ${object}`
    return !seen.has(key) && seen.add(key)
  })
}
