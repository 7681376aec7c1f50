import { fullJitterMs, pause } from '../core/backoff.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import type { Engine } from '../core/engine.ts'
import { type ErrorCode, errorCodes } from '../core/error-codes.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import {
  assertOneOf,
  type KnownOptions,
  nearest,
  optionsGiven,
} from '../core/options/known-options.ts'
import { isServerCode, prismaCodeOf, sqlStateOf } from '../core/sql-state.ts'
import { warnUnreachable } from './warn-unreachable.ts'

/** When and how often a whole transaction is run again. */
export interface RetryPolicy {
  /** Runs in all, the first included. @defaultValue 5 */
  readonly attempts?: number
  /**
   * No new attempt starts later than this after the call, and a connection is waited for no longer than
   * that. While none can be had it is the only limit: `attempts` counts runs of the body.
   * @defaultValue '10 s'
   */
  readonly budget?: Duration
  /** @deprecated Say `budget`. */
  readonly budgetMs?: number
  /** The first pause is between 0 and this; it doubles from there. @defaultValue 20 */
  readonly baseMs?: number
  /** Upper end of any pause. @defaultValue 1_000 */
  readonly capMs?: number
  /**
   * SQLSTATEs, Holdfast codes, codes of Prisma (P2002) and, of MariaDB and MySQL, numbers of errors ('1205') that are
   * run again, besides 40001, 40P01 and CONNECTION_LOST. Only add what leaves nothing behind: never COMMIT_UNKNOWN, never 57014. @defaultValue none
   */
  readonly on?: readonly string[]
  /** The same instead of them; excludes `on`. */
  readonly onlyOn?: readonly string[]
}

const retryPolicy: KnownOptions<RetryPolicy> = {
  attempts: 'checked',
  budget: 'checked',
  budgetMs: 'checked',
  baseMs: 'checked',
  capMs: 'checked',
  on: 'checked',
  onlyOn: 'checked',
}

/** A policy with everything filled in. */
export interface RetryTerms {
  readonly attempts: number
  readonly budgetMs: number
  readonly baseMs: number
  readonly capMs: number
  readonly on: readonly string[]
}

/** Told to `onRetry` before the pause. */
export interface RetryInfo {
  /** The attempt that failed, from 1. Has the same number again if no connection could be had for it. */
  readonly attempt: number
  readonly error: unknown
  /** SQLSTATE or Holdfast code. */
  readonly reason: string
  readonly pauseMs: number
}

const serializationFailure = '40001'
const deadlock = '40P01'
const unavailable: ErrorCode = 'CONNECTION_UNAVAILABLE'

/** Defaults of `RetryPolicy`. */
export const retryDefaults: RetryTerms = {
  attempts: 5,
  budgetMs: 10_000,
  baseMs: 20,
  capMs: 1_000,
  on: [serializationFailure, deadlock, 'CONNECTION_LOST'],
}

/** The policy as asked for; `false` runs once. @throws OPTION_INVALID */
export function retryTerms(retry: RetryPolicy | false | undefined): RetryTerms {
  if (retry === undefined) return retryDefaults
  if (retry === false) return { ...retryDefaults, attempts: 1 }
  if (typeof retry !== 'object' || retry === null || Array.isArray(retry))
    throw invalid('retry', 'false or an object like { attempts: 3 }')
  optionsGiven(retry, retryPolicy, 'retry')
  assertOneOf(retry, 'budget', 'budgetMs')
  assertOneOf(retry, 'on', 'onlyOn')
  const { budget, attempts = retryDefaults.attempts } = retry
  if (!Number.isSafeInteger(attempts) || attempts < 1)
    throw invalid('retry.attempts', 'a whole number, 1 or more')
  return {
    attempts,
    baseMs: msOf(retry, 'baseMs'),
    capMs: msOf(retry, 'capMs'),
    budgetMs: budget === undefined ? msOf(retry, 'budgetMs') : durationMs(budget, 'retry.budget'),
    on: codesOf(retry, 'onlyOn') ?? [...retryDefaults.on, ...(codesOf(retry, 'on') ?? [])],
  }
}

function msOf(retry: RetryPolicy, option: 'baseMs' | 'capMs' | 'budgetMs'): number {
  const { [option]: ms = retryDefaults[option] } = retry
  if (typeof ms !== 'number' || !(ms >= 0))
    throw invalid(`retry.${option}`, 'a number of milliseconds, 0 or more')
  return ms
}

function codesOf(retry: RetryPolicy, option: 'on' | 'onlyOn'): readonly string[] | undefined {
  const codes: unknown = retry[option]
  if (codes === undefined) return undefined
  if (!Array.isArray(codes) || codes.some((code) => typeof code !== 'string'))
    throw invalid(`retry.${option}`, "a list of codes like ['40001']")
  for (const code of codes as readonly string[])
    if (!isServerCode(code) && !Object.hasOwn(errorCodes, code)) throw unknownCode(code, option)
  return codes as readonly string[]
}

/** No error has it, so that nothing would ever be run again for it. */
function unknownCode(code: string, on: 'on' | 'onlyOn'): Error {
  const option = `retry.${on}`
  const near = nearest(code, [...Object.keys(errorCodes), serializationFailure, deadlock])
  // What looks like no code may be a value that got here by mistake.
  const shown = /^\w{1,40}$/.test(code) ? `'${code}'` : 'a text'
  const meant = near === undefined ? '' : `: did you mean '${near}'?`
  const subject = `${option} has ${shown}, which is no SQLSTATE and no code of Holdfast${meant}`
  return holdfastError('OPTION_INVALID', {
    details: { option, subject, ...(near && { didYouMean: near }) },
  })
}

function invalid(option: string, what: string): Error {
  return holdfastError('OPTION_INVALID', {
    details: { option, subject: `${option} must be ${what}` },
  })
}

export interface Retrying {
  readonly policy: RetryTerms
  /**
   * Codes that are waited out for so long, however many attempts that takes: nothing has happened yet, or
   * asking again is an answer to the first time. That no connection can be had is counted from the call,
   * since the first attempt has done nothing but wait for one; a doubt from when it arose.
   */
  readonly patient: {
    readonly codes: readonly ErrorCode[]
    readonly forMs: number
    /** Errors that only look like it: those that a body met elsewhere. */
    readonly unless?: (error: unknown) => boolean
  }
  readonly signal: AbortSignal | undefined
  readonly onRetry: ((info: RetryInfo) => void) | undefined
  /** How the database that is asked names its errors. @defaultValue by SQLSTATE */
  readonly codeOf?: Engine['codeOf']
}

/**
 * Runs `attempt` until it succeeds, fails for good, or the policy is spent. The only retry loop in
 * the library: an operation is repeated as a whole or not at all. An outcome that was unknown once stays
 * so until there is an answer: a later failure says nothing about the first attempt.
 */
export async function retrying<T>(
  attempt: (number: number, leftMs: number) => Promise<T>,
  { policy, patient, signal, onRetry, codeOf = sqlStateOf }: Retrying,
): Promise<T> {
  const began = performance.now()
  let doubt: unknown
  let troubled: number | undefined
  let [runs, waits] = [0, 0]
  while (true) {
    // What was waited out has not run.
    const number = runs + 1
    try {
      return await attempt(number, Math.max(1, patient.forMs - (performance.now() - began)))
    } catch (error) {
      if (isHoldfastError(error) && error.name === 'UnknownOutcomeError') doubt ??= error
      const reason = isHoldfastError(error) ? error.code : codeOf(error)
      const waitsOut = patient.codes.includes(reason as ErrorCode) && !patient.unless?.(error)
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
          isNamed(policy, error, reason) &&
          !isHoldfastError(error, 'COMMIT_UNKNOWN'))
      const now = performance.now()
      const spent = waitsOut
        ? now - (troubled ??= reason === unavailable ? began : now) + pauseMs >= patient.forMs
        : now - began + pauseMs > policy.budgetMs
      if (!again || spent) {
        throw doubt ?? named(error, reason, runs)
      }
      const info: RetryInfo = { attempt: number, error, reason: reason ?? '', pauseMs }
      if (reason === unavailable) warnUnreachable(error, now - began, patient.forMs)
      publish(channels.txRetry, info)
      onRetry?.(info)
      await pause(pauseMs, signal)
    }
  }
}

function isNamed({ on }: RetryTerms, error: unknown, reason: string | undefined): boolean {
  if (on.includes(reason ?? '')) return true
  return !isHoldfastError(error) && on.includes(prismaCodeOf(error) ?? '')
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
