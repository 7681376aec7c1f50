import type { Statement, Value } from '../../../core/driver.ts'
import type { Columns, KeyFields, VersionedTarget } from '../../../rows/engine.ts'
import { type Fragment, quoteIdentifier, tableText } from '../sql/text.ts'

function columnsText(columns: Columns): string {
  if (columns === undefined) return ', t.*'
  return columns.map((column) => `, t.${quoteIdentifier(column)}`).join('')
}

/** Keys are bound as text, which SQLite compares as the type that the column was declared with. */
function condition(key: KeyFields): Fragment {
  const fields = Object.entries(key)
  return {
    text: fields.map(([column]) => `t.${quoteIdentifier(column)} = ?`).join(' AND '),
    values: fields.map(([, text]) => text),
  }
}

/** Versions come as text, which JavaScript does not round. */
function versionOf(column: string): string {
  return `CAST(t.${quoteIdentifier(column)} AS TEXT)`
}

/** Takes the right to write without a table of ours. */
export function touch({ table, keyColumns: [column = ''] }: VersionedTarget): Statement {
  const name = quoteIdentifier(column)
  return { text: `UPDATE ${tableText(table)} SET ${name} = ${name} WHERE 0`, values: [] }
}

/** Rows of one key: one, unless the key is none. */
export function readRow(
  { table }: Pick<VersionedTarget, 'table'>,
  versionColumn: string | undefined,
  key: KeyFields,
  columns: Columns,
): Statement {
  const { text, values } = condition(key)
  const version = versionColumn === undefined ? 'NULL' : versionOf(versionColumn)
  return {
    text: `SELECT ${version} AS "#version"${columnsText(columns)} FROM ${tableText(table)} AS t WHERE ${text}`,
    values,
  }
}

/** Changes the row if it has this version, and counts that up. */
export function updateRow(
  { table, versionColumn }: VersionedTarget,
  key: KeyFields,
  sets: readonly Fragment[],
  version: string,
): Statement {
  const counted = quoteIdentifier(versionColumn)
  const all = [...sets.map(({ text }) => text), `${counted} = t.${counted} + 1`].join(', ')
  const where = condition(key)
  const values: Value[] = [...sets.flatMap((set) => set.values), ...where.values, version]
  const text = `UPDATE ${tableText(table)} AS t SET ${all} WHERE ${where.text} AND ${versionOf(versionColumn)} = ?`
  return { text, values }
}
