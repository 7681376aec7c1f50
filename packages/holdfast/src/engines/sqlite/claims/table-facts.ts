import type { Executor, Row } from '../../../core/driver.ts'
import type { TableName } from '../../../core/table-name.ts'

/** A column as it was declared. */
export interface FoundColumn {
  readonly name: string
  readonly type: string
  readonly notNull: boolean
}

/** What SQLite says about a table; no columns if it is not there. */
export interface TableFacts {
  readonly columns: ReadonlyMap<string, FoundColumn>
  /** Columns that identify a row, one list for each way. */
  readonly unique: readonly (readonly string[])[]
  /** Indexes that have a part of the rows. */
  readonly partial: ReadonlySet<string>
}

export async function tableFacts(
  executor: Executor,
  { schema = 'main', table }: TableName,
): Promise<TableFacts> {
  const ask = async (pragma: string, of: string): Promise<readonly Row[]> =>
    await executor.query({ text: `SELECT * FROM ${pragma}(?, ?)`, values: [of, schema] })
  const found = await ask('pragma_table_info', table)
  const columns = new Map(
    found.map(({ name, type, notnull, pk }) => [
      String(name),
      { name: String(name), type: String(type), notNull: Number(notnull) > 0 || Number(pk) > 0 },
    ]),
  )
  const primary = found.filter(({ pk }) => Number(pk) > 0).map(({ name }) => String(name))
  const unique = primary.length > 0 ? [primary] : []
  const partial = new Set<string>()
  for (const index of await ask('pragma_index_list', table)) {
    const name = String(index['name'])
    if (Number(index['partial']) > 0) partial.add(name)
    else if (Number(index['unique']) > 0) {
      const parts = await ask('pragma_index_info', name)
      // An expression has no name.
      if (parts.every((part) => part['name'] !== null))
        unique.push(parts.map((part) => String(part['name'])))
    }
  }
  return { columns, unique, partial }
}
