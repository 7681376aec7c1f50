import { holdfastError } from '../core/errors.ts'
import { LeaseKeeper, renewalsPerLease } from '../core/lease-keeper.ts'

/** Keeps a tick ours while its handler is at work, and says so when it no longer is. */
export interface TickLease {
  readonly signal: AbortSignal
  stop(): void
}

/** `sinceMs` is the local monotonic time just before the claim was sent. */
export function keepTick(
  renew: () => Promise<boolean>,
  leaseMs: number,
  sinceMs: number,
): TickLease {
  const lost = new AbortController()
  const lose = (reason: string): void => {
    if (keeper.stopped) return
    keeper.stop()
    lost.abort(holdfastError('SCHEDULE_TICK_LOST', { details: { subject: reason, reason } }))
  }
  // While the database cannot be asked, the end of the lease decides.
  const kept = {
    lastsMs: leaseMs,
    everyMs: leaseMs / renewalsPerLease,
    async renew() {
      const sentMs = performance.now()
      if (await renew()) keeper.extend(sentMs)
      else lose('somebody else has it')
    },
    over: () => lose('it could not be renewed in time'),
  }
  const keeper = new LeaseKeeper(kept, sinceMs)
  return { signal: lost.signal, stop: () => keeper.stop() }
}
