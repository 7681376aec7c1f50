import type { Executor } from '../../../core/driver.ts'
import { isHoldfastError } from '../../../core/errors.ts'
import { isMissingTable } from '../errno.ts'
import { assertLockTable } from '../locks/lock-table-fit.ts'
import { ownTables } from '../schema/create-tables.ts'
import { assertOwnTable, ownTableText } from '../schema/own-table.ts'
import { showTable, tableFacts } from '../schema/table-facts.ts'

/** What is wrong with a table of Holdfast. */
export type TableFault =
  | { readonly kind: 'missing' | 'unfit'; readonly table: string }
  | { readonly kind: 'index'; readonly table: string; readonly columns: readonly string[] }

/** Whether the tables of Holdfast are as `migrate` makes them, as far as locks and speed depend on it. */
export async function faultsOfOwnTables(
  executor: Executor,
  database: string,
): Promise<readonly TableFault[]> {
  // Each time anew: what was seen to fit once may be another table by now.
  const asked = {}
  const faults: TableFault[] = []
  const look = async (table: string, body: () => Promise<void>): Promise<void> => {
    try {
      await body()
    } catch (error) {
      if (isMissingTable(error)) faults.push({ kind: 'missing', table })
      else if (isHoldfastError(error, 'ENGINE_TABLE_UNFIT')) faults.push({ kind: 'unfit', table })
      else throw error
    }
  }
  await look('holdfast_lock', () => assertLockTable(asked, executor, { database }))
  for (const own of ownTables)
    await look(own.table, async () => {
      await assertOwnTable(asked, executor, own, database)
      const text = ownTableText(own, database)
      const { indexes } = tableFacts(await executor.query(showTable(text)))
      const isThere = (columns: readonly string[]): boolean =>
        indexes.some((index) => columns.every((column, at) => index.columns[at] === column))
      for (const columns of own.indexes ?? [])
        if (!isThere(columns)) faults.push({ kind: 'index', table: own.table, columns })
    })
  return faults
}
