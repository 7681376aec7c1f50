import { holdfastError } from '../../../core/errors.ts'
import { Recent } from '../../../core/recent.ts'
import type { LockKey } from '../../../core/locks/wanted-lock.ts'

/** A lock as its row is called. */
export interface NamedLock {
  readonly key: LockKey
  readonly id: bigint
  readonly row: string
}

/** What the column takes is 64; the number is the last 17 of them. */
const mostShown = 46

/**
 * How the row of a key is called: as people call it, and by its number, which alone makes it this key: `a:b` may be
 * written by two different ones, and be longer than the column.
 *
 * @throws LOCK_KEY_INVALID for a key whose number only PostgreSQL can work out
 */
export function namedLock(key: LockKey): NamedLock {
  if (key.lock.kind !== 'bigint') {
    const subject = 'keys of advisory locks are of PostgreSQL; use lockKey'
    throw holdfastError('LOCK_KEY_INVALID', { details: { subject } })
  }
  const { id } = key.lock
  const shown = key.name.replaceAll(/[^\w:.@-]/g, '_').slice(0, mostShown)
  const number = BigInt.asUintN(64, id).toString(16).padStart(16, '0')
  const row = `${shown}#${number}`
  rows.set(id, row)
  return { key, id, row }
}

/** Whether what a row shows of a name may not be all of it: it is cut off, and what is no plain character replaced. */
export function isCutOff(shown: string): boolean {
  return shown.length === mostShown || shown.includes('_')
}

/** So that one who has only the number finds the row. */
const rows = /* @__PURE__ */ new Recent<bigint, string>(10_000)

export function rowOf(id: bigint): string | undefined {
  return rows.get(id)
}

/** Each once, in the order in which everybody takes them: by their numbers, as guards queue in a process. */
export function namedLocks(keys: readonly LockKey[]): readonly NamedLock[] {
  const byId = new Map(keys.map(namedLock).map((lock) => [lock.id, lock]))
  return [...byId.values()].sort((a, b) => (a.id < b.id ? -1 : 1))
}
