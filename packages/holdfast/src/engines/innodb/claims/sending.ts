import type { Driver, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { type Asking, askAgain } from '../../../tx/ask-again.ts'
import { callFailure } from '../failure.ts'
import { isOpen } from '../tx/short-call.ts'

/**
 * A short transaction at READ COMMITTED, run again after a deadlock; after a lost answer only where `asking` says that a
 * second time is the same as the first.
 */
export async function shortly<Tx, T>(
  driver: Driver<Tx>,
  asking: Pick<Asking, 'forMs' | 'once' | 'onDoubt'>,
  body: (transaction: Transaction<Tx>) => Promise<T>,
): Promise<T> {
  const { codeOf } = driver.engine
  const run = (): Promise<T> =>
    driver.transaction(body, { isolation: 'read committed', scopes: [] })
  return await askAgain(run, { ...asking, codeOf, failure: callFailure })
}

/** What would be done twice if it was done again. */
export const onlyOnce = { forMs: 0, once: true } as const

/** The caller's transaction, which must really be open. @throws CLAIM_OUTSIDE_TRANSACTION */
export async function joinedTo<Tx>(driver: Driver<Tx>, tx: Tx): Promise<Transaction<Tx>> {
  const transaction = driver.join(tx)
  if (!(await isOpen(transaction))) throw holdfastError('CLAIM_OUTSIDE_TRANSACTION')
  return transaction
}
