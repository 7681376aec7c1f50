import { Misuse } from '../failure.ts'

/** How long a lease lasts, and what happens towards its end if it cannot be renewed. */
export interface ExecTerms {
  readonly ttlMs: number
  /** Between SIGTERM and SIGKILL. */
  readonly graceMs: number
  /** How long before the lease expires the command gets SIGTERM. */
  readonly stopBeforeMs: number
  /** Between SIGKILL and expiry: what is left for whoever has to do it in the guardian's place. */
  readonly spareMs: number
  readonly renewEveryMs: number
}

const defaultTtlMs = 30_000
/** Below that, a machine that is busy for a moment would cost the command its life. */
export const leastTtlSeconds = 2
const mostGraceMs = 10_000
/** Between SIGKILL and expiry: for timers that are late, and for the kernel to end the processes. */
const mostSpareMs = 5_000

/** @throws Misuse */
export function execTerms(
  ttlMs: number = defaultTtlMs,
  graceMs: number = Math.min(mostGraceMs, ttlMs / 4),
): ExecTerms {
  const spareMs = Math.min(mostSpareMs, ttlMs / 5)
  const stopBeforeMs = graceMs + spareMs
  if (stopBeforeMs > ttlMs / 2) {
    const most = Math.floor((ttlMs / 2 - spareMs) / 100) / 10
    throw new Misuse(
      `--grace can be ${most} s at most with a --ttl of ${ttlMs / 1_000} s: raise --ttl.`,
    )
  }
  return { ttlMs, graceMs, stopBeforeMs, spareMs, renewEveryMs: ttlMs / 3 }
}
