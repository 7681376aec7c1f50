import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import { lookOnly } from '../engines/postgres/observe/settings.ts'
import { runTransaction } from '../tx/run.ts'

/** How a look is taken. */
export interface LookOptions {
  /** The planner follows indexes; see `lookOnly`. */
  readonly byIndex?: boolean
  /** All statements see the database at the same moment. */
  readonly oneSnapshot?: boolean
}

/**
 * One look at the database: a transaction that can change nothing, and whose statements end by themselves.
 *
 * @throws OBSERVE_TIMEOUT, TX_NESTED
 */
export async function look<Tx, T>(
  driver: Driver<Tx>,
  statementTimeoutMs: number,
  body: (transaction: Transaction<Tx>) => Promise<T>,
  { byIndex = false, oneSnapshot = false }: LookOptions = {},
): Promise<T> {
  const settings = lookOnly(statementTimeoutMs, byIndex)
  try {
    return await runTransaction(
      driver,
      async (transaction, _, __, opened) => {
        await (opened ?? transaction.query(settings))
        return await body(transaction)
      },
      // A snapshot of its own per statement, unless the answers have to fit together.
      { retry: false, isolation: oneSnapshot ? 'repeatable read' : 'read committed' },
      (attempt) => attempt({ opening: () => settings }),
      'observe',
    )
  } catch (error) {
    throw sqlStateOf(error) === timedOut
      ? holdfastError('OBSERVE_TIMEOUT', { cause: error })
      : error
  }
}

/** query_canceled */
const timedOut = '57014'
