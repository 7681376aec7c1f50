import type { ColumnValue, OverTable } from '../../../claims/engine.ts'
import { holdfastError } from '../../../core/errors.ts'
import { foldedText } from '../sql/lock-order.ts'

/** All values that claims compare with or write must be such as their columns have. @throws OPTION_INVALID */
export function assertValues(
  { status, pending, claimed, done, dead, where }: OverTable['layout'],
  table: { typeOf(column: string): string; value(column: string, value: ColumnValue): unknown },
): void {
  const states = [pending, claimed, done, dead].filter((value) => value !== undefined)
  for (const value of states) table.value(status, value)
  for (const [column, value] of where) table.value(column, value)
  if (table.typeOf(status).includes('_bin')) return
  // To most collations 'dead' is 'Dead', and then dead rows would be claimed as pending ones.
  const seen = states.map((value: ColumnValue) => (value === null ? null : foldedText(`${value}`)))
  if (new Set(seen).size === seen.length) return
  const subject = 'values has two states that are one to the collation of their column'
  throw holdfastError('OPTION_INVALID', { details: { option: 'values', subject } })
}
