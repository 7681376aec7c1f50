import { holdfastError } from '../core/errors.ts'

/**
 * What to do when a row is locked by someone else: wait as long as the transaction's own
 * lock_timeout allows, fail at once, leave the row out, or wait at most so many milliseconds for
 * all rows together.
 */
export type RowWait = 'block' | 'nowait' | 'skip' | number

/** The same for a table, which cannot be left out. */
export type TableWait = Exclude<RowWait, 'skip'>

/** Longest limit: PostgreSQL's timeouts are 32-bit, and ours may get a little on top. */
const maxWaitMs = 2_000_000_000

/** The wait as asked for; no time at all is the same as not waiting. */
export function checkedWait<W extends RowWait>(wait: W, named: readonly string[]): W | 'nowait' {
  if (wait === 0) return 'nowait'
  const valid =
    typeof wait === 'number'
      ? Number.isInteger(wait) && wait > 0 && wait <= maxWaitMs
      : named.includes(wait)
  if (valid) return wait
  throw holdfastError('OPTION_INVALID', { details: { option: 'wait', subject: 'wait' } })
}
