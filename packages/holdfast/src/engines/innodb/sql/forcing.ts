import type { TableIndex } from '../schema/table-facts.ts'
import { quoteIdentifier } from './text.ts'

/** An index whose name stands in the statement: where the optimizer sorts, it locks all that it sorts. */
export function forcing({ name }: TableIndex): string {
  return ` FORCE INDEX (${quoteIdentifier(name)})`
}
