import { randomUUID } from 'node:crypto'
import { pause } from '../core/backoff.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import type { LeaseCalls, LeaseName } from './engine.ts'
import { HeldLease } from './held-lease.ts'
import type { LeaseTerms } from './lease-terms.ts'

/** Everything about a lease that somebody wants. */
export interface WantedLease {
  readonly schema: string
  readonly name: LeaseName
  readonly terms: LeaseTerms
  readonly note: string | undefined
  /** The advisory lock whose holder the lease belongs to. */
  readonly sessionLock: bigint | undefined
}

/** How long those who wait pause between two looks. */
export interface Waiting {
  readonly waitMs: number
  readonly retryMs: number
  readonly signal: AbortSignal | undefined
}

/** Somebody renews, takes or guards it at this very moment, so the next look may come soon. */
const leastPauseMs = 25
/** How far a pause may be off, so that those who wait do not come together. */
const jitter = 0.2

/** The lease, or for how many milliseconds it is taken for certain. */
type Outcome = HeldLease | number

/**
 * One try. The owner is made here, so an answer that is lost on its way may be asked for again: the
 * server gives the same owner the same lease.
 */
export async function tryLease(
  wanted: WantedLease,
  calls: LeaseCalls,
  owner: string = randomUUID(),
  since: number = performance.now(),
  leftMs: number = Infinity,
): Promise<Outcome> {
  const { schema, name, terms, note, sessionLock } = wanted
  const { ttlMs, delayMs } = terms
  const sentAt = performance.now()
  const request = { ...name, owner, ttlMs, delayMs, note, sessionLock }
  const acquired = await calls.acquire(schema, request, leftMs)
  if ('freeInMs' in acquired) return acquired.freeInMs
  const held = { ...name, owner, token: acquired.token, sessionLock }
  return new HeldLease(schema, held, terms, calls, sentAt, since)
}

/** Tries until the lease is there, the time is up or the signal says stop. */
export async function waitForLease(
  wanted: WantedLease,
  calls: LeaseCalls,
  { waitMs, retryMs, signal }: Waiting,
): Promise<HeldLease> {
  const owner = randomUUID()
  const since = performance.now()
  const until = since + waitMs
  for (;;) {
    signal?.throwIfAborted()
    const outcome = await tryLease(wanted, calls, owner, since, until - performance.now())
    if (typeof outcome !== 'number') {
      if (signal?.aborted !== true) return outcome
      await outcome.release()
      throw signal.reason
    }
    const leftMs = until - performance.now()
    if (leftMs <= 0) {
      const { name } = wanted.name
      publish(channels.leaseTimeout, { name, waitMs: performance.now() - since })
      throw holdfastError('LEASE_TIMEOUT', { about: '', details: { subject: name } })
    }
    const pauseMs = Math.min(retryMs, Math.max(leastPauseMs, outcome))
    await pause(Math.min(leftMs, spread(pauseMs)), signal)
  }
}

/** A pause that is a little off. */
export function spread(ms: number): number {
  return ms * (1 + jitter * (2 * Math.random() - 1))
}
