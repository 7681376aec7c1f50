import { setTimeout as pause } from 'node:timers/promises'
import type { Lease } from 'holdfast/leases'
import type { ExecTerms } from './exec-terms.ts'
import { machineMs } from './machine-clock.ts'

/** How soon a renewal that failed is tried again, as a part of its usual pause. */
const retryShare = 4

/**
 * Renews the lease until `stop`, and says after each renewal until when the command may run: counted from before the
 * request was sent, so that it is never later than what the server counts. A lease that is lost for certain gives 0.
 */
export async function keepLease(
  lease: Lease<unknown>,
  { ttlMs, stopBeforeMs, renewEveryMs }: ExecTerms,
  stop: AbortSignal,
  tell: (until: number) => void,
): Promise<void> {
  const over = AbortSignal.any([stop, lease.signal])
  while (!over.aborted) {
    const sentAt = machineMs()
    const isRenewed = await lease.renew().catch(() => undefined)
    if (stop.aborted) return
    if (isRenewed === true) tell(sentAt + ttlMs - stopBeforeMs)
    // Undefined: nobody answered, and what was told before holds until it is over.
    if (isRenewed === false) break
    const everyMs = isRenewed === true ? renewEveryMs : renewEveryMs / retryShare
    await pause(everyMs, undefined, { signal: over }).catch(() => undefined)
  }
  if (!stop.aborted && reasonOf(lease) !== 'deadline') tell(0)
}

function reasonOf({ signal }: Lease<unknown>): unknown {
  const { details } = (signal.reason ?? {}) as { readonly details?: { readonly reason?: unknown } }
  return details?.reason
}
