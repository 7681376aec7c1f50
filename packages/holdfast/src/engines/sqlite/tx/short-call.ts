import type { Driver, Row, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { assertNotNested } from '../../../core/open-transactions.ts'
import { askAgain } from '../../../tx/ask-again.ts'
import { codeOf, isMissingTable } from '../result-code.ts'

/** How long the right to write is waited for where nothing else says so. */
const limitMs = 10_000

/**
 * A short transaction, which begins when nobody else writes to the file. The whole of it is run again for so long where
 * the disk does not tell whether it was committed: what it does must be the same the second time.
 *
 * @throws TX_NESTED in a body of ours, which would be waited for by itself; LOCK_TIMEOUT
 */
export async function shortTransaction<Tx, T>(
  driver: Driver<Tx>,
  forMs: number,
  body: (transaction: Transaction<Tx>) => Promise<T>,
  withinMs: number = limitMs,
): Promise<T> {
  assertNotNested(driver)
  const settings = { scopes: [], connectWithinMs: Math.min(withinMs, limitMs) }
  return await askAgain(() => driver.transaction(body, settings), {
    forMs,
    once: forMs === 0,
    codeOf,
    failure: (error) => error,
  })
}

/** What a feature does with its own tables. */
export class ShortCalls<Tx> {
  readonly #driver: Driver<Tx>

  constructor(driver: Driver<Tx>) {
    this.#driver = driver
  }

  /** A statement that only reads: it waits for no writer, and sees what was committed last. */
  async read(statement: Statement): Promise<readonly Row[]> {
    return await this.within(() => this.#driver.alone.query(statement))
  }

  /** `shortTransaction`. @throws SCHEMA_MISSING */
  async write<T>(
    forMs: number,
    body: (transaction: Transaction<Tx>) => Promise<T>,
    withinMs: number = limitMs,
  ): Promise<T> {
    return await this.within(() => shortTransaction(this.#driver, forMs, body, withinMs))
  }

  /** In a transaction that is given. @throws SCHEMA_MISSING */
  async within<T>(run: () => Promise<T>): Promise<T> {
    try {
      return await run()
    } catch (error) {
      throw isMissingTable(error) ? holdfastError('SCHEMA_MISSING', { cause: error }) : error
    }
  }
}
