import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { hasKey, notGiven } from './claim.ts'
import type { ClaimsEngine, OverTable, TakeLayout } from './engine.ts'
import { positive } from './layout.ts'
import { tellClaimed } from './lease-claims.ts'

/** A row that the caller's transaction has locked, and nobody else can take. */
export interface Taken<R> {
  /** The row as it is under the lock. */
  readonly row: R
  /** The values of its key columns, as text. */
  readonly key: readonly string[]
}

/**
 * Claims for the length of a transaction: the lock on the row is the claim. A crash or a rollback
 * frees the row at once, and no column has to be there for it.
 */
export interface TransactionClaims<Tx, R> {
  /**
   * Locks up to `limit` rows, oldest first, without waiting for those that others have locked.
   *
   * @example
   * await hf.transaction(async (tx) => {
   *   for (const { row } of await invoices.take(tx, 10)) await send(tx, row)
   * })
   * @throws CLAIM_OUTSIDE_TRANSACTION, CLAIM_STALE_SNAPSHOT, CLAIM_TABLE_UNFIT, OPTION_INVALID
   */
  take(tx: Tx, limit?: number): Promise<readonly Taken<R>[]>
  /**
   * Writes that they are done, or deletes them, in the same transaction.
   *
   * @throws CLAIM_LOST if one of them is not pending, CLAIM_OUTSIDE_TRANSACTION
   */
  finish(tx: Tx, taken: readonly Taken<R>[] | Taken<R>): Promise<void>
}

/** Rows that are locked, as an engine has them. */
export function createTransactionClaims<Tx, R>(
  engine: ClaimsEngine,
  driver: Driver<Tx>,
  layout: TakeLayout,
  turnColumn: string | undefined,
): TransactionClaims<Tx, R> {
  const settings: OverTable = {
    layout,
    perKey: turnColumn === undefined ? undefined : { column: turnColumn, limit: undefined },
  }
  const rows = engine.taken(driver, settings)
  const over = <T>({ beside = driver.alone }: Transaction<Tx>, asking: Promise<T>): Promise<T> =>
    engine.overTable(settings, beside, asking)
  const takeOn = async (
    transaction: Transaction<Tx>,
    limit: number,
  ): Promise<readonly Taken<R>[]> => {
    const began = performance.now()
    const found = await rows.take(transaction, limit)
    const taken = found.map(({ row, key }) => ({ row: row as R, key }))
    tellClaimed(layout.table.table, limit, taken.length, began, true)
    return taken
  }
  return {
    async take(tx, limit = 1) {
      positive(limit, 'limit')
      const transaction = await engine.joined(driver, tx)
      return await over(transaction, takeOn(transaction, limit))
    },
    async finish(tx, taken) {
      const all = Array.isArray(taken) ? (taken as readonly Taken<R>[]) : [taken as Taken<R>]
      if (!all.every((each) => hasKey(each) && each.key.length === layout.key.length))
        throw notGiven('taken must be what take() gave')
      if (all.length === 0) return
      const transaction = await engine.joined(driver, tx)
      const finishing = rows.finish(
        transaction,
        all.map(({ key }) => key),
      )
      const states = await over(transaction, finishing)
      const lost = all.filter((_, at) => states[at] !== 'kept').map(({ key }) => key)
      if (lost.length > 0) throw holdfastError('CLAIM_LOST', { details: { lost } })
    },
  }
}
