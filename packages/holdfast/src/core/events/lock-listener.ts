import type { LockRequestedEvent } from './event-map.ts'

type Locks = LockRequestedEvent['locks']

/**
 * Who wants to know how the locks of one driver are used. Events are for the whole process; this tells
 * two databases apart, and makes no message.
 */
export interface LockListener {
  /** Followed by exactly one of the next three, with the same array. `since` by performance.now(). */
  requested(locks: Locks, since: number): void
  acquired(locks: Locks, waitMs: number): void
  refused(locks: Locks, why: 'timeout' | 'busy', waitMs: number): void
  failed(locks: Locks): void
  released(locks: Locks, heldMs: number): void
}
