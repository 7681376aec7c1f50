import type { NotedKey } from '../../core/locks/lock-memory.ts'
import type { SeenLock } from '../../engines/postgres/observe/locks.ts'
import type { NoteEntry } from '../../engines/postgres/observe/notes.ts'

/**
 * An advisory lock by its number: `1:<bigint>`, or `2:<high>,<low>` of the pairs, which are locks of
 * their own. pg_locks shows each half as a number without sign.
 */
export function lockIdOf({ classid, objid, objsubid }: SeenLock): string {
  const high = classid ?? 0
  const low = objid ?? 0
  if (objsubid === 2) return pairId(high, low)
  return `1:${BigInt.asIntN(64, (BigInt(high) << 32n) | BigInt(low))}`
}

/** With its sign, as it was given to PostgreSQL. */
export function pairId(high: number, low: number): string {
  return `2:${high | 0},${low | 0}`
}

/** How `note_locks` is told of a key. */
export function noteEntry({ name, namespace, lock }: NotedKey): NoteEntry {
  if (lock.kind === 'bigint') return { id: `1:${lock.id}`, name, namespace }
  if (lock.kind === 'pair') return { id: pairId(lock.high, lock.low), name, namespace }
  if (lock.kind === 'hashtext') return { hashtext: lock.text, name, namespace }
  return { hashtext: lock.text, high: lock.high, name, namespace }
}
