import { holdfastError } from '../../../core/errors.ts'
import type { TableName } from '../../../core/table-name.ts'

/** A name as SQL text: always quoted, so case and reserved words are what the caller wrote. */
export function quoteIdentifier(name: string): string {
  if (typeof name !== 'string' || name.length === 0 || name.includes('\0')) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'identifier', subject: 'a name is empty or contains NUL' },
    })
  }
  return `"${name.replaceAll('"', '""')}"`
}

export function tableText({ schema, table }: TableName): string {
  const name = quoteIdentifier(table)
  return schema === undefined ? name : `${quoteIdentifier(schema)}.${name}`
}

/** A text as SQL; backslashes are safe whatever standard_conforming_strings says. */
export function quoteLiteral(text: string): string {
  const quoted = text.replaceAll("'", "''")
  return quoted.includes('\\') ? `E'${quoted.replaceAll('\\', '\\\\')}'` : `'${quoted}'`
}
