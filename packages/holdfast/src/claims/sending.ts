import type { Driver, Executor, Row, Statement, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isConnectionLoss, wasNeverSent } from '../core/sql-state.ts'
import { isJoined } from '../engines/postgres/claims.ts'
import { joinMarker } from '../engines/postgres/join-marker.ts'
import { retryDefaults, retrying } from '../tx/retry.ts'

/** One statement in a transaction of its own; run again after a conflict, never after a lost answer. */
export async function sendAlone(executor: Executor, statement: Statement): Promise<readonly Row[]> {
  return await retrying(
    async () => {
      try {
        return await executor.query(statement)
      } catch (error) {
        if (!isConnectionLoss(error)) throw error
        throw holdfastError(wasNeverSent(error) ? 'CONNECTION_LOST' : 'COMMIT_UNKNOWN', {
          cause: error,
        })
      }
    },
    { policy: retryDefaults, signal: undefined, onRetry: undefined },
  )
}

/**
 * The caller's transaction. Where the client cannot tell whether it is in one, the server is given a
 * mark that the next statement outside a transaction does not see any more.
 */
export async function joinedTo<Tx>(driver: Driver<Tx>, tx: Tx): Promise<Transaction<Tx>> {
  const transaction = driver.join(tx)
  const state = transaction.state()
  if (state === 'none') throw holdfastError('CLAIM_OUTSIDE_TRANSACTION')
  if (state === 'unknown') {
    await transaction.query(joinMarker)
    const [row] = await transaction.query(isJoined)
    if (row?.['joined'] !== true) throw holdfastError('CLAIM_OUTSIDE_TRANSACTION')
  }
  return transaction
}
