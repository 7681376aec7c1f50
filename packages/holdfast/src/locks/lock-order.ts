import type { LockToken } from '../engines/postgres/locks.ts'

/** Why an order of acquisition can deadlock. */
export type OrderFault = 'out-of-order' | 'upgrade' | 'rows-first'

/** The canonical order: lock space, then the number PostgreSQL locks. */
function isAfter(a: LockToken, b: LockToken): boolean {
  return a.space === b.space ? a.id > b.id : a.space > b.space
}

/**
 * Compares what was just granted with what the transaction already held, as the server's marker
 * tells it. Taking a key again in the same or a weaker mode is harmless.
 */
export function orderFault(
  before: readonly LockToken[],
  rowsBefore: boolean,
  granted: readonly LockToken[],
): OrderFault | undefined {
  if (rowsBefore && granted.length > 0) return 'rows-first'
  for (const lock of granted) {
    const same = before.filter((held) => held.space === lock.space && held.id === lock.id)
    if (same.length > 0) {
      const exclusive = same.some((held) => held.mode === 'exclusive')
      if (lock.mode === 'exclusive' && !exclusive) return 'upgrade'
    } else if (before.some((held) => isAfter(held, lock))) {
      return 'out-of-order'
    }
  }
  return undefined
}
