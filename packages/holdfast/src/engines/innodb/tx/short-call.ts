import type { Driver, Row, Statement, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { askAgain } from '../../../tx/ask-again.ts'
import { innodbOf } from '../driver.ts'
import { isMissingTable, isReadOnly } from '../errno.ts'
import { callFailure } from '../failure.ts'
import { forgetServer, serverOf } from '../server.ts'
import { assertOwnTable, type OwnTable, ownTableText } from '../schema/own-table.ts'

/** Tables of a feature, by what they are called there. */
export type OwnTables<K extends string> = Readonly<Record<K, OwnTable>>
/** Their names in statements. */
export type TableTexts<K extends string> = Readonly<Record<K, string>>

/** What a feature does with its own tables, in the database of the connections unless another one is chosen. */
export class ShortCalls<Tx, K extends string> {
  readonly #driver: Driver<Tx>
  readonly #tables: OwnTables<K>
  readonly #database: string | undefined

  constructor(driver: Driver<Tx>, tables: OwnTables<K>, database: string | undefined) {
    this.#driver = driver
    this.#tables = tables
    this.#database = database
  }

  /** One statement that is a transaction of its own; a lost answer is asked for again for so long. */
  async alone(
    forMs: number,
    statement: (texts: TableTexts<K>) => Statement,
  ): Promise<readonly Row[]> {
    return await this.#again(forMs, async () => {
      const { alone } = this.#driver
      return await alone.query(statement(await this.#texts(alone)))
    })
  }

  /**
   * A short transaction at READ COMMITTED. The whole of it is run again after a deadlock, and for so long after a lost
   * answer: what it does must be the same the second time.
   */
  async transaction<T>(
    forMs: number,
    body: (transaction: Transaction<Tx>, texts: TableTexts<K>) => Promise<T>,
  ): Promise<T> {
    return await this.#again(forMs, () =>
      this.#driver.transaction(
        async (transaction) => await body(transaction, await this.#texts(transaction)),
        { isolation: 'read committed', scopes: [] },
      ),
    )
  }

  /** In a transaction that is given. */
  async within<T>(
    transaction: Transaction<Tx>,
    body: (texts: TableTexts<K>) => Promise<T>,
  ): Promise<T> {
    return await named(async () => {
      try {
        return await body(await this.#texts(transaction))
      } catch (error) {
        if (!isReadOnly(error)) throw error
        forgetServer(this.#driver)
        throw this.#onStandby(error)
      }
    })
  }

  async #again<T>(forMs: number, send: () => Promise<T>): Promise<T> {
    const { codeOf } = this.#driver.engine
    return await named(() => askAgain(send, { forMs, codeOf, failure: callFailure }))
  }

  #onStandby(cause: unknown): Error {
    return holdfastError('LOCK_ON_STANDBY', { cause, details: { client: this.#driver.name } })
  }

  /** Looks once at the server and at the tables, by statements that open no snapshot. */
  async #texts(executor: Transaction<Tx> | Driver<Tx>['alone']): Promise<TableTexts<K>> {
    const facts = await serverOf(this.#driver, executor)
    if (facts.isReadOnly && 'native' in executor) throw this.#onStandby(undefined)
    const database = this.#database ?? facts.database
    if (database === undefined) {
      const subject =
        'the connection has chosen no database; name the one that the tables of Holdfast are in'
      throw holdfastError('OPTION_INVALID', { details: { option: 'database', subject } })
    }
    const texts: [string, string][] = []
    for (const [name, table] of Object.entries<OwnTable>(this.#tables)) {
      await assertOwnTable(this.#driver, executor, table, database)
      texts.push([name, ownTableText(table, database)])
    }
    return Object.fromEntries(texts) as TableTexts<K>
  }
}

async function named<T>(run: () => Promise<T>): Promise<T> {
  try {
    return await run()
  } catch (error) {
    throw isMissingTable(error) ? holdfastError('SCHEMA_MISSING', { cause: error }) : error
  }
}

/** Asked of the server where the client does not show it. */
export async function isOpen<Tx>(transaction: Transaction<Tx>): Promise<boolean> {
  return transaction.state() === 'open' || (await innodbOf(transaction).isOpen())
}
