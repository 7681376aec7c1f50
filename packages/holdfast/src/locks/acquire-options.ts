import { type Wait, type WaitTerms, waitTerms } from '../core/options/wait.ts'
import { objectGiven } from '../core/options/given.ts'
import { assertOneOf, type KnownOptions } from '../core/options/known-options.ts'

/** How one acquisition waits. */
export interface AcquireOptions {
  /**
   * Longest wait for all keys together, counted from the call. `'nowait'` does not wait; `'inherit'`
   * leaves the transaction's own lock_timeout in force.
   * @defaultValue '2 s', or sooner by the transaction's own lock_timeout
   */
  readonly wait?: Wait
  /** @deprecated Say `wait`. */
  readonly waitMs?: number | 'inherit'
  /**
   * Keep the transaction usable after a timeout, by a savepoint (two more round trips).
   * @defaultValue false
   */
  readonly keepTransaction?: boolean
  /**
   * Allow REPEATABLE READ and SERIALIZABLE, where what is read after the lock may be older than the
   * lock. At SERIALIZABLE PostgreSQL catches that, but only if the other writer is SERIALIZABLE too.
   * @defaultValue false
   */
  readonly allowStaleSnapshot?: boolean
}

export const acquireOptions: KnownOptions<AcquireOptions> = {
  wait: 'checked',
  waitMs: 'checked',
  keepTransaction: 'boolean',
  allowStaleSnapshot: 'boolean',
}

export const tryAcquireOptions: KnownOptions<Pick<AcquireOptions, 'allowStaleSnapshot'>> = {
  allowStaleSnapshot: 'boolean',
}

/** `AcquireOptions`, checked. */
export interface AcquireTerms {
  readonly wait: WaitTerms
  readonly keepTransaction: boolean
  readonly allowStaleSnapshot: boolean
}

/** @throws OPTION_INVALID */
export function acquireTerms(usual: WaitTerms, options: AcquireOptions | undefined): AcquireTerms {
  const {
    wait,
    waitMs,
    keepTransaction = false,
    allowStaleSnapshot = false,
  } = objectGiven(options, 'options')
  if (waitMs !== undefined && wait !== undefined) assertOneOf({ wait, waitMs }, 'wait', 'waitMs')
  const given =
    wait === undefined ? waitTerms(waitMs, usual, ['inherit'], 'waitMs') : waitTerms(wait, usual)
  return { wait: given, keepTransaction, allowStaleSnapshot }
}
