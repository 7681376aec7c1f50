import type { Driver, Executor, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { isTrue } from '../../../core/is-true.ts'
import { askAgain } from '../../../tx/ask-again.ts'
import { joinMarker } from '../tx/join-marker.ts'
import { waitForStandby } from '../tx/transaction.ts'
import { isJoined } from './claims.ts'

/** Each statement in a transaction of its own; sent again after a conflict, never after a lost answer. */
export function aloneOn<Tx>({ alone }: Driver<Tx>): Executor {
  return {
    query: async (statement) =>
      await askAgain(() => alone.query(statement), { forMs: 0, once: true }),
  }
}

/** What can be asked for again; `doubted` if it was, and the last answer may be about the first time. */
export function askingAgain<Tx>(
  { alone }: Driver<Tx>,
  forMs: number,
): Executor & { readonly doubted: boolean } {
  const on = {
    doubted: false,
    async query(statement: Statement) {
      on.doubted = false
      const onDoubt = (): void => {
        on.doubted = true
      }
      const rows = await askAgain(() => alone.query(statement), { forMs, onDoubt })
      // An answer that changed nothing has waited for no standby.
      if (on.doubted) await askAgain(() => alone.query(waitForStandby), { forMs })
      return rows
    },
  }
  return on
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
