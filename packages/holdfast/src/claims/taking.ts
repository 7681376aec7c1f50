import type { Driver, Executor, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { claimedRows, seesLatest, takeRows, type Turns } from '../engines/postgres/claims/claims.ts'
import { finishAnswers, finishTaken, type TakeLayout } from '../engines/postgres/claims/finish.ts'
import { nextTurns, turnsOf } from '../engines/postgres/claims/turns.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import type { OverTable } from './check.ts'
import { hasKey, notGiven } from './claim.ts'
import { positive } from './layout.ts'
import { tellClaimed } from './lease-claims.ts'
import { joinedTo } from './sending.ts'
import { overTable } from './table-failure.ts'

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

export function createTransactionClaims<Tx, R>(
  driver: Driver<Tx>,
  given: TakeLayout,
  turnColumn: string | undefined,
): TransactionClaims<Tx, R> {
  let lastTurn: string | undefined
  const settings: OverTable = {
    layout: given,
    perKey: turnColumn === undefined ? undefined : { column: turnColumn, limit: undefined },
  }
  const beside = (transaction: Transaction<Tx>): Executor => transaction.beside ?? driver.alone
  const takeOn = async (
    transaction: Transaction<Tx>,
    limit: number,
  ): Promise<readonly Taken<R>[]> => {
    const layout = await withOperators(driver, transaction, given)
    const { table } = layout.table
    const began = performance.now()
    let turns: Turns | undefined
    if (turnColumn !== undefined) {
      const request = { column: turnColumn, most: limit, after: lastTurn }
      const found = await transaction.query(nextTurns(layout, request))
      const keys = found.map((row) => String(row['#key']))
      if (keys.length === 0) {
        tellClaimed(table, limit, 0, began, true)
        return []
      }
      lastTurn = keys.at(-1)
      turns = turnsOf(turnColumn, keys, limit, { limit: undefined, rate: undefined })
    }
    const rows = await transaction.query(takeRows(layout, { limit, joined: true, turns }))
    if (!seesLatest(rows)) throw holdfastError('CLAIM_STALE_SNAPSHOT')
    const taken = claimedRows(layout, rows).map(({ row, key }) => ({ row: row as R, key }))
    tellClaimed(table, limit, taken.length, began, true)
    return taken
  }
  const finishOn = async (
    transaction: Transaction<Tx>,
    keys: readonly (readonly string[])[],
  ): Promise<string> => {
    const layout = await withOperators(driver, transaction, given)
    const [row] = await transaction.query(finishTaken(layout, keys))
    return String(row?.['answer'])
  }
  return {
    async take(tx, limit = 1) {
      positive(limit, 'limit')
      const transaction = await joinedTo(driver, tx)
      return await overTable(settings, beside(transaction), takeOn(transaction, limit))
    },
    async finish(tx, taken) {
      const all = Array.isArray(taken) ? (taken as readonly Taken<R>[]) : [taken as Taken<R>]
      if (!all.every((each) => hasKey(each) && each.key.length === given.key.length))
        throw notGiven('taken must be what take() gave')
      if (all.length === 0) return
      const transaction = await joinedTo(driver, tx)
      const finishing = finishOn(
        transaction,
        all.map(({ key }) => key),
      )
      const answers = await overTable(settings, beside(transaction), finishing)
      const lost = all.filter((_, at) => answers[at] !== finishAnswers.kept).map(({ key }) => key)
      if (lost.length > 0) throw holdfastError('CLAIM_LOST', { details: { lost } })
    },
  }
}
