import type { Row } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isStorable } from '../core/storable.ts'
import type { ClaimedRow } from './engine.ts'

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
  /**
   * Those for which it was not done: the lease was over and the row was given back, or it is gone; or a trigger or a policy
   * of the table has kept it from being changed. Then it is claimed until its lease is over.
   */
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

/** A claim, and no handle of a client: one of Prisma has whatever the models are called. */
export function isClaim(value: unknown): value is Claim<unknown> {
  const { token, attempt } = (value ?? {}) as Partial<Claim<unknown>>
  return (
    hasKey(value) && isStorable(token) && (attempt === undefined || Number.isSafeInteger(attempt))
  )
}

/** Whether it says which row it is about. */
export function hasKey(value: unknown): value is { readonly key: readonly string[] } {
  const { key } = (value ?? {}) as { readonly key?: unknown }
  return Array.isArray(key) && key.every(isStorable)
}

/** One or several, as they were given back: with a value for each column of the key. @throws OPTION_INVALID */
export function claimsGiven<R>(given: unknown, columns: number): readonly Claim<R>[] {
  const all: readonly unknown[] = Array.isArray(given) ? given : [given]
  if (all.every((each) => isClaim(each) && each.key.length === columns))
    return all as readonly Claim<R>[]
  throw notGiven('claims must be what claim() gave')
}

export function notGiven(subject: string): Error {
  return holdfastError('OPTION_INVALID', { details: { option: 'claims', subject } })
}
