import { statementFailure } from '../core/errors/commit-failure.ts'
import { type Duration, durationMs } from '../core/options/duration.ts'
import type { Engine } from '../core/engine.ts'
import type { ErrorCode } from '../core/error-codes.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { retryDefaults, retrying } from './retry.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** How long Holdfast asks before it says that an outcome is unknown. */
export interface ResolveOptions {
  /**
   * For how long a lost answer is asked for again, where an operation id, a key or a token makes that
   * safe, and for how long a database that cannot be reached is waited for: longer than a failover takes.
   * @defaultValue '10 s'
   */
  readonly resolveFor?: Duration
}

export const resolveOptions: KnownOptions<ResolveOptions> = {
  resolveFor: 'checked',
}

/** The same in milliseconds. @throws OPTION_INVALID */
export function resolveMs({ resolveFor = '10 s' }: ResolveOptions): number {
  return durationMs(resolveFor, 'resolveFor')
}

/** What may be done about a lost answer. */
export interface Asking {
  readonly forMs: number
  /**
   * What a lost answer is called if it does not come. It is asked for again, unless `once`. For a look that
   * changes nothing, CONNECTION_LOST. @defaultValue 'COMMIT_UNKNOWN'
   */
  readonly unknown?: ErrorCode
  /** A second time would do it twice: only what was never sent is sent again. */
  readonly once?: boolean
  /** Called when an answer is lost and asked for again: the next one may be about the first time. */
  readonly onDoubt?: () => void
  /** SQLSTATEs after which it is sent again, besides conflicts. */
  readonly on?: readonly string[]
  /** How the database that is asked names its errors. @defaultValue by SQLSTATE */
  readonly codeOf?: Engine['codeOf']
  /** What a failure means; the second is what a lost answer is called. @defaultValue as PostgreSQL and its clients say it */
  readonly failure?: (error: unknown, unknown: ErrorCode) => unknown
}

/** Sends a statement that is a transaction of its own until there is an answer, or the time is up. */
export async function askAgain<T>(
  send: () => Promise<T>,
  {
    forMs,
    unknown = 'COMMIT_UNKNOWN',
    once = false,
    onDoubt,
    on = [],
    codeOf = sqlStateOf,
    failure = statementFailure,
  }: Asking,
): Promise<T> {
  return await retrying(
    async () => {
      try {
        return await send()
      } catch (error) {
        throw failure(error, unknown)
      }
    },
    {
      policy: { ...retryDefaults, on: [...retryDefaults.on, ...on] },
      patient: {
        codes: ['CONNECTION_UNAVAILABLE', 'CONNECTION_LOST', ...(once ? [] : [unknown])],
        forMs,
      },
      signal: undefined,
      codeOf,
      onRetry({ reason }) {
        if (reason === unknown) onDoubt?.()
      },
    },
  )
}

/**
 * Runs a whole transaction until it is known whether it was committed, where every attempt begins by asking
 * that. Errors of an attempt that `isSure` are its own: it was told about those before it, and has not
 * come to its COMMIT.
 */
export async function untilTold<T>(
  attempt: () => Promise<T>,
  {
    forMs,
    isSure,
    onDoubt,
  }: { readonly forMs: number; readonly isSure: () => boolean; readonly onDoubt: () => void },
): Promise<T> {
  const run = async (): Promise<() => T> => {
    try {
      const result = await attempt()
      return () => result
    } catch (error) {
      if (!isSure()) throw error
      return () => {
        throw error
      }
    }
  }
  const told = await retrying(run, {
    policy: { ...retryDefaults, on: [] },
    patient: { codes: ['COMMIT_UNKNOWN'], forMs },
    signal: undefined,
    onRetry: onDoubt,
  })
  return told()
}
