import type { Statement, Value } from '../../core/driver.ts'
import { quoteIdentifier } from './identifier.ts'

/** Calls a function of ours, which answers with one text. */
export function ledgerCall(
  schema: string,
  name: string,
  types: readonly string[],
  values: readonly Value[],
): Statement {
  const list = types.map((type, at) => `$${at + 1}::text::${type}`).join(', ')
  return {
    text: `SELECT ${quoteIdentifier(schema)}.${name}(${list})::text AS answer`,
    values: values.map((value) => (value === null ? null : String(value))),
  }
}
