import { holdfastError } from '../core/errors.ts'

/** Keeps a tick ours while its handler is at work, and says so when it no longer is. */
export interface TickLease {
  readonly signal: AbortSignal
  stop(): void
}

/** Renewed so often that two renewals may fail before the lease ends. */
const renewals = 3

/**
 * Renews until stopped. `sinceMs` is the local monotonic time just before the claim was sent: the
 * lease ends no sooner than `leaseMs` after it, and when that much time has passed without a
 * renewal, the tick is taken to be lost, whether or not anybody else has it.
 */
export function keepTick(
  renew: () => Promise<boolean>,
  leaseMs: number,
  sinceMs: number,
): TickLease {
  const lost = new AbortController()
  let timer: NodeJS.Timeout | undefined
  let end: NodeJS.Timeout | undefined
  let stopped = false
  const stop = (): void => {
    stopped = true
    clearTimeout(timer)
    clearTimeout(end)
  }
  const lose = (reason: string, cause?: unknown): void => {
    if (stopped) return
    stop()
    const details = { subject: reason, reason }
    lost.abort(holdfastError('SCHEDULE_TICK_LOST', { details, cause }))
  }
  const holdUntil = (momentMs: number): void => {
    clearTimeout(end)
    const leftMs = momentMs - performance.now()
    end = setTimeout(() => lose('it could not be renewed in time'), Math.max(0, leftMs))
  }
  const again = (): void => {
    timer = setTimeout(() => void extend(), leaseMs / renewals)
  }
  const extend = async (): Promise<void> => {
    const beforeMs = performance.now()
    try {
      if (!(await renew())) lose('somebody else has it')
      else if (!stopped) holdUntil(beforeMs + leaseMs)
    } catch {
      // The database cannot be asked. The end of the lease decides; until then it is tried again.
    }
    if (!stopped) again()
  }
  holdUntil(sinceMs + leaseMs)
  again()
  return { signal: lost.signal, stop }
}
