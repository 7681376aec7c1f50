/**
 * Which steps of different flows may not change places. Two steps are independent if running them in
 * either order gives the same answers and the same state; whatever is not known to be independent is
 * dependent. The rules follow PostgreSQL's MVCC: a plain read does not meet another's write, it meets
 * the commit that makes the write visible.
 */
import type { Footprint, Touch, TouchMode } from './model.ts'

type Ends = NonNullable<Footprint['ends']>

/** One reason for two steps to depend on each other. Asked in both directions. */
export interface Rule {
  readonly name: string
  holds(one: Footprint, other: Footprint): boolean
}

/** Pairs that wait for each other or see each other before anything is committed. */
const excludes: Readonly<Record<TouchMode, ReadonlySet<TouchMode>>> = {
  read: new Set(['exclusive']),
  'key-share': new Set(['lock', 'exclusive', 'attempt']),
  lock: new Set(['key-share', 'lock', 'insert', 'exclusive', 'attempt']),
  append: new Set(['insert', 'exclusive']),
  insert: new Set(['lock', 'append', 'insert', 'exclusive']),
  exclusive: new Set(['read', 'key-share', 'lock', 'append', 'insert', 'exclusive', 'attempt']),
  attempt: new Set(['key-share', 'lock', 'exclusive', 'attempt']),
}

/** Every mode but `append` looks at what is committed, if only at keys. */
const sees: ReadonlySet<TouchMode> = new Set([
  'read',
  'key-share',
  'lock',
  'insert',
  'exclusive',
  'attempt',
])

/** These wait, or find out, as long as another transaction holds the object. */
const waits: ReadonlySet<TouchMode> = new Set([
  'key-share',
  'lock',
  'insert',
  'exclusive',
  'attempt',
])

const writes: ReadonlySet<TouchMode> = new Set(['lock', 'append', 'insert', 'exclusive'])

/** `public.seats#id=1`: the relation, the columns of the key, the whole. */
function parts(object: string): readonly [string, string | undefined] {
  const hash = object.indexOf('#')
  if (hash === -1) return [object, undefined]
  const equals = object.indexOf('=', hash)
  return [object.slice(0, hash), equals === -1 ? '' : object.slice(hash + 1, equals)]
}

/**
 * Whether two objects may be, or contain, the same thing. Rows of one relation are apart only if both
 * are named by the same columns and differ in their values. `*` is every relation.
 */
export function overlap(one: string, other: string): boolean {
  if (one === other) return true
  if (one === '*') return !other.startsWith('advisory ')
  if (other === '*') return !one.startsWith('advisory ')
  const [relation, key] = parts(one)
  const [otherRelation, otherKey] = parts(other)
  if (relation !== otherRelation) return false
  return key === undefined || otherKey === undefined || key !== otherKey
}

function touchesAny(touches: readonly Touch[], objects: readonly string[]): boolean {
  return touches.some((touch) => objects.some((object) => overlap(touch.object, object)))
}

/** What of a step looks at committed data: under one snapshot per transaction only the taking of it. */
function lookups(footprint: Footprint): readonly Touch[] {
  return footprint.touches.filter(
    ({ mode, object }) =>
      sees.has(mode) &&
      (mode !== 'read' || object === '*' || footprint.isolation === 'read committed'),
  )
}

function committed(ends: Ends | undefined): readonly string[] {
  return ends?.how === 'commit' ? ends.writes : []
}

/** Every way in which two steps can meet; the tests leave out one at a time and must then fail. */
export const rules: readonly Rule[] = [
  {
    // Either order of two that exclude each other decides who waits, fails or skips.
    name: 'exclusion',
    holds: (one, other) =>
      one.touches.some((touch) =>
        other.touches.some(
          (second) => excludes[touch.mode].has(second.mode) && overlap(touch.object, second.object),
        ),
      ),
  },
  {
    // A commit before or after a snapshot decides what is seen under it.
    name: 'visibility',
    holds: (one, other) => touchesAny(lookups(one), committed(other.ends)),
  },
  {
    // Whoever comes before the release waits, fails or skips; whoever comes after does not.
    name: 'release',
    holds: (one, other) =>
      touchesAny(
        one.touches.filter(({ mode }) => waits.has(mode)),
        other.ends?.locks ?? [],
      ),
  },
  {
    // What SERIALIZABLE lets pass depends on who read before whom wrote, commit or not.
    name: 'serializable conflict',
    holds: (one, other) =>
      bothSerializable(one, other) &&
      one.touches.some((touch) =>
        other.touches.some(
          (second) => writes.has(second.mode) && overlap(touch.object, second.object),
        ),
      ),
  },
  {
    // ... and on which of the transactions had ended by then.
    name: 'serializable end',
    holds: (one, other) =>
      bothSerializable(one, other) &&
      one.ends !== undefined &&
      (other.ends !== undefined || other.touches.length > 0),
  },
]

function bothSerializable(one: Footprint, other: Footprint): boolean {
  return one.isolation === 'serializable' && other.isolation === 'serializable'
}

function empty(footprint: Footprint): boolean {
  return !footprint.opaque && footprint.touches.length === 0 && footprint.ends === undefined
}

/** Whether two steps of different flows may not change places. */
export type Dependent = (one: Footprint, other: Footprint) => boolean

/** The relation that some rules make; `dependent` is the one with all of them. */
export function dependentBy(chosen: readonly Rule[]): Dependent {
  return (one, other) => {
    if (empty(one) || empty(other)) return false
    if (one.opaque || other.opaque) return true
    return chosen.some((rule) => rule.holds(one, other) || rule.holds(other, one))
  }
}

/** Whether two steps of different flows may not change places: unknown means they may not. */
export const dependent: Dependent = dependentBy(rules)
