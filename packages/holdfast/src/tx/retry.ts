import { fullJitterMs, pause } from '../core/backoff.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'

/** When and how often a whole transaction is run again. */
export interface RetryPolicy {
  /** Runs in all, the first included. @defaultValue 5 */
  readonly attempts?: number
  /**
   * No new attempt starts later than this after the first. While no connection can be had it is the only
   * limit: `attempts` counts runs of the body. @defaultValue 10_000
   */
  readonly budgetMs?: number
  /** The first pause is between 0 and this; it doubles from there. @defaultValue 20 */
  readonly baseMs?: number
  /** Upper end of any pause. @defaultValue 1_000 */
  readonly capMs?: number
  /**
   * SQLSTATEs and Holdfast codes that are run again. Only add what leaves nothing behind: never
   * COMMIT_UNKNOWN, never 57014. @defaultValue ['40001', '40P01', 'CONNECTION_LOST']
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
  on: [serializationFailure, deadlock, 'CONNECTION_LOST'],
}

export interface Retrying {
  readonly policy: Required<RetryPolicy>
  /**
   * Codes that are waited out for so long from the first of them, however many attempts that takes: nothing
   * has happened yet, or asking again is an answer to the first time.
   */
  readonly patient: { readonly codes: readonly ErrorCode[]; readonly forMs: number }
  readonly signal: AbortSignal | undefined
  readonly onRetry: ((info: RetryInfo) => void) | undefined
}

/**
 * Runs `attempt` until it succeeds, fails for good, or the policy is spent. The only retry loop in
 * the library: an operation is repeated as a whole or not at all. An outcome that was unknown once stays
 * so until there is an answer: a later failure says nothing about the first attempt.
 */
export async function retrying<T>(
  attempt: (number: number) => Promise<T>,
  { policy, patient, signal, onRetry }: Retrying,
): Promise<T> {
  const began = performance.now()
  let doubt: unknown
  let troubled: number | undefined
  let [runs, waits] = [0, 0]
  for (let number = 1; ; number += 1) {
    try {
      return await attempt(number)
    } catch (error) {
      if (isHoldfastError(error) && error.name === 'UnknownOutcomeError') doubt ??= error
      const reason = reasonOf(error)
      const waitsOut = patient.codes.includes(reason as ErrorCode)
      if (waitsOut) waits += 1
      else runs += 1
      // A millisecond at least, so that whoever gives one is asked for nothing twice.
      const pauseMs = Math.max(
        1,
        fullJitterMs(Math.max(1, runs, waits), policy.baseMs, policy.capMs),
      )
      const again =
        waitsOut ||
        (runs < policy.attempts &&
          policy.on.includes(reason ?? '') &&
          !isHoldfastError(error, 'COMMIT_UNKNOWN'))
      const now = performance.now()
      const spent = waitsOut
        ? now - (troubled ??= now) + pauseMs >= patient.forMs
        : now - began + pauseMs > policy.budgetMs
      if (!again || spent) {
        throw doubt ?? named(error, reason, number)
      }
      const info: RetryInfo = { attempt: number, error, reason: reason ?? '', pauseMs }
      publish(channels.txRetry, info)
      onRetry?.(info)
      await pause(pauseMs, signal)
    }
  }
}

function reasonOf(error: unknown): string | undefined {
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
