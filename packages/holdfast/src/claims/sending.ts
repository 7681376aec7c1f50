import type { Driver, Executor, Row, Statement, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isJoined } from '../engines/postgres/claims/claims.ts'
import { joinMarker } from '../engines/postgres/tx/join-marker.ts'
import { waitForStandby } from '../engines/postgres/tx/transaction.ts'
import { askAgain } from '../tx/ask-again.ts'
import { isTrue } from '../core/is-true.ts'

/** Each statement in a transaction of its own; sent again after a conflict, never after a lost answer. */
export function aloneOn<Tx>({ alone }: Driver<Tx>): Executor {
  return {
    query: async (statement) =>
      await askAgain(() => alone.query(statement), { forMs: 0, once: true }),
  }
}

/** The same for what can be asked for again; `doubted` if it was, and the answer may be about the first time. */
export async function sendAgain(
  executor: Executor,
  statement: Statement,
  forMs: number,
): Promise<{ readonly rows: readonly Row[]; readonly doubted: boolean }> {
  let doubted = false
  const onDoubt = (): void => {
    doubted = true
  }
  const rows = await askAgain(() => executor.query(statement), { forMs, onDoubt })
  // An answer that changed nothing has waited for no standby.
  if (doubted) await askAgain(() => executor.query(waitForStandby), { forMs })
  return { rows, doubted }
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
    if (!isTrue(row?.['joined'])) throw holdfastError('CLAIM_OUTSIDE_TRANSACTION')
  }
  return transaction
}
