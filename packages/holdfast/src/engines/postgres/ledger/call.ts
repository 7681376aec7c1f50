import type { Statement, Value } from '../../../core/driver.ts'
import { quoteIdentifier } from '../sql/identifier.ts'
import { parameters, type ParameterType } from '../sql/parameter.ts'

/** Calls a function of ours, which answers with one text. */
export function ledgerCall(
  schema: string,
  name: string,
  types: readonly ParameterType[],
  values: readonly Value[],
): Statement {
  return {
    text: `SELECT ${quoteIdentifier(schema)}.${name}(${parameters(types)})::pg_catalog.text AS answer`,
    values: values.map((value) => (value === null ? null : String(value))),
  }
}
