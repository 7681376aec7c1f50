import type { Session, SessionDriver } from '../core/driver.ts'
import { isHoldfastError } from '../core/errors.ts'
import type { LossReason } from '../core/events/event-map.ts'
import { lockKey } from '../core/locks/lock-key.ts'
import { tryLease, type WantedLease } from './acquire-lease.ts'
import type { LeaseCalls, LeaseEngine, LeaseName } from './engine.ts'
import type { HeldLease } from './held-lease.ts'
import type { BigintKey } from '../core/locks/wanted-lock.ts'

/** Where a candidate stands: it tries for the lease, and whoever has it may be told to leave. */
export interface Seat {
  /** The lease, or for how many milliseconds it is somebody else's for certain. */
  attempt(): Promise<HeldLease | number>
  /** Gives up whatever the seat holds besides the lease. Calling it again is harmless. */
  leave(): Promise<void>
}

/** A candidate that needs no connection of its own. */
export function leaseSeat(wanted: WantedLease, calls: LeaseCalls): Seat {
  return {
    attempt: () => tryLease(wanted, calls),
    leave: () => Promise.resolve(),
  }
}

/** The advisory lock whose holder leads. */
export function leaderKey({ scope, name }: LeaseName): BigintKey {
  return lockKey('holdfast-leader', scope, name)
}

/**
 * A candidate that holds a session: the server lets go of its lock the moment the connection ends.
 * The session is closed, not given back, so that no lock is ever left in it.
 *
 * @throws LEASE_SESSION_POOLED
 */
export async function sessionSeat(
  engine: LeaseEngine,
  wanted: WantedLease,
  driver: Pick<SessionDriver<never>, 'session'>,
): Promise<Seat> {
  const session = await driver.session(wanted.name.scope)
  let seat: Seat
  try {
    seat = leaseSeat(wanted, await engine.onSession(session, wanted.terms.ttlMs))
  } catch (error) {
    await session.end()
    throw error
  }
  let lease: HeldLease | undefined
  session.lost.addEventListener('abort', () => lease?.lose(lossOf(session)), { once: true })
  return {
    async attempt() {
      session.lost.throwIfAborted()
      const outcome = await seat.attempt()
      if (typeof outcome === 'number') return outcome
      lease = outcome
      // Lost between the answer and this line.
      if (session.lost.aborted) lease.lose(lossOf(session))
      return lease
    },
    leave: () => session.end(),
  }
}

/** What a session that is lost means to who leads by it. */
function lossOf({ lost }: Session): LossReason {
  const reason: unknown = lost.reason
  const moved =
    isHoldfastError(reason, 'SHARD_MOVING') || isHoldfastError(reason, 'SHARD_ELSEWHERE')
  return moved ? 'moved' : 'connection'
}
