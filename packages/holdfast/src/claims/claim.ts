import type { Row } from '../core/driver.ts'
import type { ClaimedRow } from '../engines/postgres/claims.ts'

/** The fenced right to work on one row until its lease is over. */
export interface Claim<R> {
  /** The row as it was claimed. */
  readonly row: R
  /** The values of its key columns, as text. */
  readonly key: readonly string[]
  /** What proves that the row is still ours; everything that is written goes by it. */
  readonly token: string
  /** Which attempt this is, from 1; `undefined` without a column for it. */
  readonly attempt: number | undefined
  /**
   * When the lease ends at the earliest, by `performance.now()`; moved by `heartbeat`. Measured from
   * before the claim was sent, so that it is over here before it is over on the server.
   */
  readonly deadline: number
}

/** What became of several claims. */
export interface Outcome<R> {
  /** Those for which it was done. */
  readonly kept: readonly Claim<R>[]
  /** Those that are not ours any more: the lease was over and the row was given back, or it is gone. */
  readonly lost: readonly Claim<R>[]
}

/** What became of claims that failed. */
export interface FailOutcome<R> extends Outcome<R> {
  /** Of `kept`, those that had their last attempt. */
  readonly dead: readonly Claim<R>[]
}

/** A claim of which the deadline can be moved. */
export interface HeldClaim<R> extends Claim<R> {
  deadline: number
}

export function claimsOf<R>(
  rows: readonly ClaimedRow[],
  { token, deadline }: Pick<HeldClaim<R>, 'token' | 'deadline'>,
  read: (row: Row) => R,
): HeldClaim<R>[] {
  return rows.map(({ key, attempt, row }) => ({ row: read(row), key, token, attempt, deadline }))
}
