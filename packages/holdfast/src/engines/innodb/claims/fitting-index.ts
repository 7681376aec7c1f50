import type { TableFacts, TableIndex } from '../schema/table-facts.ts'

/** What a statement wants of an index: one value of each of these, and the rows in that order. */
export interface IndexUse {
  readonly fixed: readonly string[]
  readonly order: readonly string[]
}

/** The index that gives the rows in their order, and no others. */
export function fittingIndex(
  { indexes }: TableFacts,
  { fixed, order }: IndexUse,
): TableIndex | undefined {
  const known = new Set(fixed)
  // The columns of the primary key are the end of every other index.
  const primary = indexes.find(({ name }) => name === 'PRIMARY')?.columns ?? []
  const wanted = [...new Set(order)].filter((column) => !known.has(column))
  return indexes.find(({ columns, descending }) => {
    const head = columns.slice(0, known.size)
    if (head.length < known.size || !head.every((column) => known.has(column))) return false
    const rest = [...columns.slice(known.size), ...primary].filter((column) => !known.has(column))
    const inOrder = [...new Set(rest)]
    // From one end or from the other.
    const directions = new Set(wanted.map((column) => descending.has(column)))
    return wanted.every((column, at) => inOrder[at] === column) && directions.size < 2
  })
}
