import { randomUUID } from 'node:crypto'
import { pause } from '../core/backoff.ts'
import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { acquireLease, type LeaseName } from '../engines/postgres/leases/leases.ts'
import { connectingWithin } from '../engines/postgres/sql/function-call.ts'
import { HeldLease } from './held-lease.ts'
import type { LeaseTerms } from './lease-terms.ts'
import type { RunCall } from './run-call.ts'

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
 * One try. The owner is made here, so `run` may ask again for an answer that is lost on its way: the
 * server gives the same owner the same lease.
 */
export async function tryLease(
  wanted: WantedLease,
  run: RunCall,
  owner: string = randomUUID(),
  since: number = performance.now(),
  leftMs: number = Infinity,
): Promise<Outcome> {
  try {
    return await ask(wanted, run, owner, since, leftMs)
  } catch (error) {
    // At REPEATABLE READ by default: somebody else was a moment earlier.
    if (sqlStateOf(error) === '40001') return 0
    throw error
  }
}

async function ask(
  wanted: WantedLease,
  run: RunCall,
  owner: string,
  since: number,
  leftMs: number,
): Promise<Outcome> {
  const { schema, name, terms, note, sessionLock } = wanted
  const { ttlMs, delayMs } = terms
  const sentAt = performance.now()
  const call = acquireLease(schema, { ...name, owner, ttlMs, delayMs, note, sessionLock })
  const answer = await run(leftMs === Infinity ? call : connectingWithin(call, leftMs))
  const [token = '', ms] = (answer ?? '').split(',')
  if (token === '') return Number(ms ?? 0)
  const held = { ...name, owner, token: BigInt(token), sessionLock }
  return new HeldLease(schema, held, terms, run, sentAt, since)
}

/** Tries until the lease is there, the time is up or the signal says stop. */
export async function waitForLease(
  wanted: WantedLease,
  run: RunCall,
  { waitMs, retryMs, signal }: Waiting,
): Promise<HeldLease> {
  const owner = randomUUID()
  const since = performance.now()
  const until = since + waitMs
  for (;;) {
    signal?.throwIfAborted()
    const outcome = await tryLease(wanted, run, owner, since, until - performance.now())
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
