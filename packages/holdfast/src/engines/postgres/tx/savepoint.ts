import type { Transaction } from '../../../core/driver.ts'

/** The name is ours alone, so nesting with the caller's savepoints is safe. */
const name = 'holdfast_wait'

/** Runs the body in a savepoint, for clients without a savepoint call of their own. */
export async function withSavepoint<Tx, T>(
  transaction: Transaction<Tx>,
  body: (inner: Transaction<Tx>) => Promise<T>,
): Promise<T> {
  await transaction.command(`SAVEPOINT ${name}`)
  let result: T
  try {
    result = await body(transaction)
  } catch (error) {
    await transaction.command(`ROLLBACK TO SAVEPOINT ${name}`)
    await transaction.command(`RELEASE SAVEPOINT ${name}`)
    throw error
  }
  // RELEASE hands the locks to the surrounding transaction; ROLLBACK TO would give them back.
  await transaction.command(`RELEASE SAVEPOINT ${name}`)
  return result
}
