import type { OverTable } from '../../../claims/engine.ts'
import type { Driver, Executor } from '../../../core/driver.ts'
import { errnoOf, isMissingIndex } from '../errno.ts'
import { type ClaimTable, claimTable } from './claim-table.ts'

/** Neither are, perhaps, columns or the table. */
const changed: ReadonlySet<number | undefined> = new Set([1054, 1146, 1142, 1143])

/** What is known of a table, looked up when it is used for the first time, and again when it turns out to be another one. */
export class KnownTable<Tx> {
  readonly #driver: Driver<Tx>
  readonly #settings: OverTable
  #table: ClaimTable | undefined

  constructor(driver: Driver<Tx>, settings: OverTable) {
    this.#driver = driver
    this.#settings = settings
  }

  /** Runs something that may be run once more if the first statement over the table says that it has changed. */
  async use<T>(run: (tableOn: (on: Executor) => Promise<ClaimTable>) => Promise<T>): Promise<T> {
    const tableOn = async (on: Executor): Promise<ClaimTable> => {
      this.#table ??= await claimTable(this.#driver, on, this.#settings)
      return this.#table
    }
    try {
      return await run(tableOn)
    } catch (error) {
      const isIndex = isMissingIndex(error)
      if (isIndex || changed.has(errnoOf(error))) this.#table = undefined
      if (!isIndex) throw error
      return await run(tableOn)
    }
  }
}
