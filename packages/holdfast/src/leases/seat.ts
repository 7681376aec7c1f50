import type { Session, SessionDriver } from '../core/driver.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import type { LossReason } from '../core/event-map.ts'
import { type BigintKey, lockKey } from '../core/lock-key.ts'
import type { LeaseName } from '../engines/postgres/leases/leases.ts'
import { keepWatch, whichBackend } from '../engines/postgres/tx/session.ts'
import { tryLease, type WantedLease } from './acquire-lease.ts'
import type { HeldLease } from './held-lease.ts'
import { type RunCall, runOnSession } from './run-call.ts'

/** Where a candidate stands: it tries for the lease, and whoever has it may be told to leave. */
export interface Seat {
  /** The lease, or for how many milliseconds it is somebody else's for certain. */
  attempt(): Promise<HeldLease | number>
  /** Gives up whatever the seat holds besides the lease. Calling it again is harmless. */
  leave(): Promise<void>
}

/** A candidate that needs no connection of its own. */
export function leaseSeat(wanted: WantedLease, run: RunCall): Seat {
  return {
    attempt: () => tryLease(wanted, run),
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
  wanted: WantedLease,
  driver: Pick<SessionDriver<never>, 'session'>,
): Promise<Seat> {
  const session = await driver.session(wanted.name.scope)
  try {
    await assertDirect(session)
    await session.query(keepWatch(wanted.terms.ttlMs))
  } catch (error) {
    await session.end()
    throw error
  }
  const seat = leaseSeat(wanted, runOnSession(session))
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

/** A pooler reports a process id of its own making, and hands the session to the next client. */
async function assertDirect(session: Session): Promise<void> {
  const [row] = await session.query(whichBackend)
  if (Number(row?.['pid']) !== session.claimedPid) throw holdfastError('LEASE_SESSION_POOLED')
}
