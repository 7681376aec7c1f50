/** How the hunt reads what a statement touches, and which values it binds to which columns: by PostgreSQL's parser. */
import type { Footprint, Step } from '../core/model.ts'
import type { GivenValue } from '../run/statement/row-condition.ts'
import { shapeOf } from '../run/statement/statement-shape.ts'
import { comparisonsIn } from './comparisons.ts'
import type { BoundValue } from './profile.ts'

/** The reading of statements, which a control of the tests takes away. */
export interface Reading {
  footprint(step: Step): Footprint
  bound(steps: readonly Step[]): readonly BoundValue[]
}

export const byParser: Reading = {
  footprint: (step) => step.footprint,
  bound: (steps) => steps.flatMap(boundIn),
}

function boundIn({ statements, parameters }: Step): BoundValue[] {
  const [text, more] = statements
  if (text === undefined || more !== undefined) return []
  const { rows, target, reads, write } = shapeOf(text)
  const tables = [...new Set([...(target ? [target] : []), ...reads].map(({ name }) => name))]
  const [first] = tables
  if (rows && first !== undefined) {
    return [...rows.equals].flatMap(([column, given]): BoundValue[] => {
      const value = valueOf(given, parameters)
      if (value === undefined) return []
      return [{ table: first, column, value, inserted: write === 'insert' }]
    })
  }
  // Of several tables nobody says here whose column it is: it may be that of each.
  return comparisonsIn(text).flatMap(({ column, parameter }) => {
    const value = parameters[parameter - 1]
    if (value === undefined || value === null) return []
    return tables.map((table): BoundValue => ({ table, column, value, inserted: false }))
  })
}

function valueOf(
  { source }: GivenValue,
  parameters: readonly (string | null)[],
): string | undefined {
  if ('parameter' in source) return parameters[source.parameter - 1] ?? undefined
  return 'number' in source ? source.number : source.string
}
