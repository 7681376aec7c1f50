import type { Driver, Executor, Statement, Transaction } from '../core/driver.ts'
import { isHoldfastError } from '../core/errors.ts'
import { within } from '../core/within.ts'
import { cancelTransaction, whichTransaction } from '../engines/postgres/transaction.ts'

/** How long a cancel request may keep us from rolling back; after that the rollback goes first. */
const cancelLimitMs = 1_000

/**
 * Runs the body so that an abort cancels the statement it is waiting for. The transaction is given
 * back only when the body has returned: a client handle must never be used by two at once.
 */
export async function cancellable<Tx, T>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  signal: AbortSignal,
  run: () => Promise<T>,
): Promise<T> {
  const [which] = await transaction.query(whichTransaction)
  let cancelling: Promise<unknown> | undefined
  let ended = false
  const onAbort = (): void => {
    const cancel = cancelTransaction(Number(which?.['pid']), String(which?.['began']))
    const beside = transaction.beside ?? driver.alone
    cancelling = cancelBeside(beside, cancel, () => ended)
  }
  signal.throwIfAborted()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const result = await run()
    signal.throwIfAborted()
    return result
  } finally {
    ended = true
    signal.removeEventListener('abort', onAbort)
    if (cancelling !== undefined) await within(cancelling, cancelLimitMs)
  }
}

/** How long it is tried at a time to get a connection to cancel with. */
const cancelTryMs = 50

/** Best effort: while no connection is free to cancel with, the statement goes on. Never rejects. */
async function cancelBeside(
  beside: Executor,
  cancel: Statement,
  ended: () => boolean,
): Promise<void> {
  while (!ended()) {
    try {
      await beside.query({ ...cancel, connectWithinMs: cancelTryMs })
      return
    } catch (error) {
      if (!isHoldfastError(error, 'POOL_STARVED')) return
    }
  }
}
