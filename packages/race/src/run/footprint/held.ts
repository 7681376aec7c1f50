import type { Catalogue } from '../catalogue/catalogue.ts'
import type { HeldLock } from '../connection/control.ts'

/** What a session holds, in the words of footprints. */
export interface Held {
  /** Modes by object; partitions under the name of their table. */
  readonly relations: ReadonlyMap<string, ReadonlySet<string>>
  /** Object ids of the sequences that were drawn from. */
  readonly sequences: ReadonlySet<number>
  /** Whether shared, by key. */
  readonly advisory: ReadonlyMap<string, boolean>
  /** It has a transaction id: it wrote, or locked rows. */
  readonly wrote: boolean
  /** Holds a relation that is in no catalogue, such as one that was just made. */
  readonly unknown: boolean
  /** A table of another server, or a view of what other sessions do: see `Relation.far`. */
  readonly far?: string
}

export const nothingHeld: Held = {
  relations: new Map(),
  sequences: new Set(),
  advisory: new Map(),
  wrote: false,
  unknown: false,
}

/** `waiting` counts what a session waits for as if it had it. */
export function readHeld(
  locks: readonly HeldLock[],
  catalogue: Catalogue,
  waiting: boolean = false,
): Held {
  const relations = new Map<string, Set<string>>()
  const sequences = new Set<number>()
  const advisory = new Map<string, boolean>()
  let wrote = false
  let unknown = false
  let far: string | undefined
  for (const lock of locks) {
    if (!lock.granted && !waiting) continue
    if (lock.locktype === 'advisory') advisory.set(lock.key, lock.mode === 'ShareLock')
    else if (lock.locktype === 'transactionid')
      wrote ||= lock.granted && lock.mode === 'ExclusiveLock'
    else {
      const relation = catalogue.relations.get(lock.relation)
      if (relation?.far) far = relation.object
      if (relation?.kind === 'sequence') sequences.add(lock.relation)
      else if (relation?.kind === 'table') {
        const modes = relations.get(relation.object) ?? new Set<string>()
        relations.set(relation.object, modes.add(lock.mode))
      } else if (!relation) unknown ||= !catalogue.ignored.has(lock.relation)
    }
  }
  return { relations, sequences, advisory, wrote, unknown, ...(far !== undefined && { far }) }
}

export function mergedRelations(
  one: Held['relations'],
  other: Held['relations'],
): Held['relations'] {
  const all = new Map([...one].map(([object, modes]) => [object, new Set(modes)]))
  for (const [object, modes] of other) {
    all.set(object, new Set([...(all.get(object) ?? []), ...modes]))
  }
  return all
}

/** Whether ending the transaction now would be noticed by nobody: nothing was written or locked. */
export function holdsNothing(held: Held): boolean {
  return (
    !held.wrote &&
    !held.unknown &&
    held.advisory.size === 0 &&
    [...held.relations.values()].every((modes) => [...modes].every((mode) => weak.has(mode)))
  )
}

// Taken by every statement; they hinder DDL and LOCK TABLE only, and those only for a moment.
const weak = new Set(['AccessShareLock', 'RowShareLock', 'RowExclusiveLock'])
