import { bodyFailure, commitFailure, openingFailure } from '../core/commit-failure.ts'
import type { Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isConnectionLoss, sqlStateOf } from '../core/sql-state.ts'
import { probe, rolledBackTag } from '../engines/postgres/transaction.ts'
import type { ConnectionWatch } from './pg-connection.ts'
import { hearing } from './sync-wait.ts'

/** A transaction of a client that runs a callback and commits if it resolves. */
export interface CallbackTransaction<Tx, T> {
  /** Opens it, by the client's own call. */
  open(callback: (native: Tx) => Promise<void>): Promise<unknown>
  join(native: Tx): Transaction<Tx>
  body(transaction: Transaction<Tx>): Promise<T>
  /** After a failed COMMIT the client sends ROLLBACK, and reports the failure of that instead. */
  readonly masksCommit: boolean
  /** Watches the `pg` connection beneath the client, where that can be reached. */
  watch?(native: Tx): ConnectionWatch | undefined
}

type Stage = 'opening' | 'body' | 'committing'

/**
 * Runs the body in a client's own transaction and resolves only if PostgreSQL committed. The error
 * the body threw wins over what the client makes of it.
 */
export async function runInCallback<Tx, T>(how: CallbackTransaction<Tx, T>): Promise<T> {
  let stage = 'opening' as Stage
  let done = undefined as { readonly result: T } | undefined
  let failure = undefined as { readonly error: unknown } | undefined
  let connection = undefined as ConnectionWatch | undefined
  let assertSynced = (): void => undefined
  try {
    await how.open(async (native) => {
      stage = 'body'
      connection = how.watch?.(native)
      const transaction = how.join(native)
      try {
        done = { result: await how.body(transaction) }
        if (connection?.lost === true) throw holdfastError('CONNECTION_LOST')
        await assertUsable(transaction, connection)
      } catch (error) {
        const lost = connection?.lost ?? (isConnectionLoss(error) && (await isGone(transaction)))
        failure = { error: bodyFailure(error, lost) }
        throw error
      }
      stage = 'committing'
      assertSynced = connection?.assertSynced ?? hearing()
    })
  } catch (error) {
    if (stage === 'committing') throw commitFailure(error, how.masksCommit)
    if (failure !== undefined) throw failure.error
    throw openingFailure(error)
  } finally {
    connection?.stop()
  }
  if (connection?.ending === rolledBackTag) throw holdfastError('TX_ROLLED_BACK')
  if (done === undefined) throw holdfastError('DRIVER_HANDLE_INVALID')
  assertSynced()
  return done.result
}

/**
 * COMMIT of an aborted block is a rollback, which the client would report as success. Where the
 * connection is watched, COMMIT's own command tag tells; elsewhere only a statement does.
 */
async function assertUsable<Tx>(
  transaction: Transaction<Tx>,
  connection: ConnectionWatch | undefined,
): Promise<void> {
  if (transaction.state() === 'failed') throw holdfastError('TX_ROLLED_BACK')
  if (connection?.seesTags === true) return
  try {
    const [row] = await transaction.query(probe)
    if (row?.['usable'] !== true) throw holdfastError('TX_ROLLED_BACK')
  } catch (error) {
    if (sqlStateOf(error) === '25P02') throw holdfastError('TX_ROLLED_BACK', { cause: error })
    throw error
  }
}

/** Tells our broken connection from one that the body opened to somewhere else. */
async function isGone<Tx>(transaction: Transaction<Tx>): Promise<boolean> {
  try {
    await transaction.query(probe)
    return false
  } catch (error) {
    return isConnectionLoss(error)
  }
}
