import { holdfastError } from '../../core/errors.ts'
import type { Duration } from '../../core/options/duration.ts'
import type { ResolveOptions } from '../../tx/ask-again.ts'

/** How operations outside a caller's transaction are sent. */
export interface CombinerOptions extends ResolveOptions {
  /**
   * How many calls may be under way at once, each on a connection of the pool. Accounts that somebody's transaction
   * has locked take one more. @defaultValue 2
   */
  readonly lanes?: number
  /** Lines in one call at most. @defaultValue 500 */
  readonly batch?: number
  /** Put operations of concurrent callers into one call. @defaultValue true */
  readonly coalesce?: boolean
  /** Longest wait of an operation that does not say so itself, counted from the call. @defaultValue '10 s' */
  readonly wait?: Duration
  /** Operations that may wait at once; more are refused with LEDGER_OVERLOADED. @defaultValue 100000 */
  readonly queue?: number
}

/** @throws OPTION_INVALID */
export function assertCounts(counts: Readonly<Record<string, number>>): void {
  for (const [option, value] of Object.entries(counts)) {
    if (!Number.isSafeInteger(value) || value < 1) {
      throw holdfastError('OPTION_INVALID', { details: { option, subject: option } })
    }
  }
}
