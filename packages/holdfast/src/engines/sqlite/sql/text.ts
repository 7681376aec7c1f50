import type { Value } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import type { TableName } from '../../../core/table-name.ts'

/**
 * A name as SQL text, always quoted. In an expression it stands behind the name of its table: SQLite takes a quoted name
 * that is none for a text.
 */
export function quoteIdentifier(name: string): string {
  if (typeof name !== 'string' || name.length === 0 || name.includes('\0')) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'identifier', subject: 'a name is empty or contains NUL' },
    })
  }
  return `"${name.replaceAll('"', '""')}"`
}

/** A schema is the name of a database that is attached. */
export function tableText({ schema, table }: TableName): string {
  const name = quoteIdentifier(table)
  return schema === undefined ? name : `${quoteIdentifier(schema)}.${name}`
}

/** A part of a statement, and what is bound to the placeholders in it. */
export interface Fragment {
  readonly text: string
  readonly values: readonly Value[]
}

/** One row with a whole number. */
export const oneRow = 'SELECT 1 AS one'
