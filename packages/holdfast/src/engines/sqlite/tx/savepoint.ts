import type { Transaction } from '../../../core/driver.ts'
import { keptOrUndone } from '../../../core/kept-or-undone.ts'
import { isMissingSavepoint } from '../result-code.ts'

/** The name is ours alone, so nesting with the caller's savepoints is safe. */
const name = 'holdfast_wait'

/** Runs the body in a savepoint: kept if it resolves, undone if it rejects. */
export async function withSavepoint<Tx, T>(
  transaction: Transaction<Tx>,
  body: (inner: Transaction<Tx>) => Promise<T>,
): Promise<T> {
  const savepoint = {
    open: `SAVEPOINT ${name}`,
    undo: [`ROLLBACK TO ${name}`, `RELEASE ${name}`],
    keep: `RELEASE ${name}`,
    isMissing: isMissingSavepoint,
    // INSERT OR ROLLBACK and the like.
    saysSo: () => transaction.state() === 'none',
  }
  return await keptOrUndone(transaction, savepoint, body)
}
