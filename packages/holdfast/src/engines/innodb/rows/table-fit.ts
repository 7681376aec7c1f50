import type { Executor } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { displayName } from '../../../core/table-name.ts'
import type { RowTarget } from '../../../rows/engine.ts'
import { showTable, type TableFacts, tableFacts, unfitTable } from '../schema/table-facts.ts'
import { forcing } from '../sql/forcing.ts'
import { tableText } from '../sql/text.ts'

/** A table, and the unique key by which its rows are found. */
export interface FitTable {
  /** By `foldedName` of each column. */
  readonly types: TableFacts['types']
  /** Says it in a statement, which fails if the key is not there any more, or may not be used. */
  readonly force: string
}

/** How the server compares names of columns: without regard to case. */
export function foldedName(column: string): string {
  return column.toLowerCase()
}

/** What is known of tables, by driver and by name and key. */
const known = new WeakMap<object, Map<string, FitTable>>()

/** A statement has named a key that is not there: they are looked at anew. */
export function forgetTables(driver: object): void {
  known.delete(driver)
}

/**
 * Looks once whether rows of a table can be locked by these columns: only by a whole unique key is one row locked and
 * nothing else; otherwise what is scanned is.
 *
 * @throws ENGINE_TABLE_UNFIT, ROWS_KEY_INVALID
 */
export async function fitTable(
  driver: object,
  executor: Executor,
  { table, keyColumns }: RowTarget,
): Promise<FitTable> {
  const name = JSON.stringify([table.schema, table.table, keyColumns])
  const tables = known.get(driver) ?? new Map<string, FitTable>()
  known.set(driver, tables)
  const seen = tables.get(name)
  if (seen !== undefined) return seen
  const facts = tableFacts(await executor.query(showTable(tableText(table))))
  const subject = displayName(table)
  if (!facts.isInnodb || facts.isOwn)
    throw holdfastError('ENGINE_TABLE_UNFIT', {
      details: { subject: unfitTable(subject, facts) },
    })
  const wanted = new Set(keyColumns.map(foldedName))
  const key = facts.indexes.find(
    ({ isUnique, columns }) =>
      isUnique &&
      columns.length === wanted.size &&
      columns.every((column) => wanted.has(foldedName(column))),
  )
  if (key === undefined) {
    const why =
      'the key columns are not its primary key, nor a unique one by which the server searches'
    throw holdfastError('ROWS_KEY_INVALID', { details: { subject: `${subject}: ${why}` } })
  }
  const types = new Map(Array.from(facts.types, ([name, type]) => [foldedName(name), type]))
  const fit = { types, force: forcing(key) }
  tables.set(name, fit)
  return fit
}
