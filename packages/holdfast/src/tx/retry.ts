import { fullJitterMs, pause } from '../core/backoff.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'

/** When and how often a whole transaction is run again. */
export interface RetryPolicy {
  /** Runs in all, the first included. @defaultValue 5 */
  readonly attempts?: number
  /** No new attempt starts later than this after the first. @defaultValue 10_000 */
  readonly budgetMs?: number
  /** The first pause is between 0 and this; it doubles from there. @defaultValue 20 */
  readonly baseMs?: number
  /** Upper end of any pause. @defaultValue 1_000 */
  readonly capMs?: number
  /**
   * SQLSTATEs and Holdfast codes that are run again. Only add what leaves nothing behind: never
   * COMMIT_UNKNOWN, never 57014. @defaultValue ['40001', '40P01']
   */
  readonly on?: readonly string[]
}

/** Told to `onRetry` before the pause. */
export interface RetryInfo {
  /** The attempt that failed, from 1. */
  readonly attempt: number
  readonly error: unknown
  /** SQLSTATE or Holdfast code. */
  readonly reason: string
  readonly pauseMs: number
}

const serializationFailure = '40001'
const deadlock = '40P01'

/** Defaults of `RetryPolicy`. */
export const retryDefaults: Required<RetryPolicy> = {
  attempts: 5,
  budgetMs: 10_000,
  baseMs: 20,
  capMs: 1_000,
  on: [serializationFailure, deadlock],
}

export interface Retrying {
  readonly policy: Required<RetryPolicy>
  readonly signal: AbortSignal | undefined
  readonly onRetry: ((info: RetryInfo) => void) | undefined
}

/**
 * Runs `attempt` until it succeeds, fails for good, or the policy is spent. The only retry loop in
 * the library: an operation is repeated as a whole or not at all.
 */
export async function retrying<T>(
  attempt: (number: number) => Promise<T>,
  { policy, signal, onRetry }: Retrying,
): Promise<T> {
  const began = performance.now()
  for (let number = 1; ; number += 1) {
    try {
      return await attempt(number)
    } catch (error) {
      const reason = reasonOf(error)
      const elapsedMs = performance.now() - began
      const pauseMs = fullJitterMs(number, policy.baseMs, policy.capMs)
      const spent = number >= policy.attempts || elapsedMs + pauseMs > policy.budgetMs
      if (reason === undefined || !policy.on.includes(reason)) throw named(error, reason, number)
      if (spent) throw named(error, reason, number)
      const info: RetryInfo = { attempt: number, error, reason, pauseMs }
      publish(channels.txRetry, info)
      onRetry?.(info)
      await pause(pauseMs, signal)
    }
  }
}

/** Never retryable, whatever the policy says: nobody knows whether the first run happened. */
function reasonOf(error: unknown): string | undefined {
  if (isHoldfastError(error, 'COMMIT_UNKNOWN')) return undefined
  return isHoldfastError(error) ? error.code : sqlStateOf(error)
}

function named(error: unknown, reason: string | undefined, attempts: number): unknown {
  if (reason === serializationFailure) {
    return holdfastError('TX_SERIALIZATION', { cause: error, details: { attempts } })
  }
  if (reason === deadlock) {
    return holdfastError('TX_DEADLOCK', { cause: error, details: { attempts } })
  }
  return error
}
