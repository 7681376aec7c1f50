/** How the hunt reads what a statement touches, and which values it binds to which columns: by PostgreSQL's parser. */
import type { Footprint, Step } from '../../core/model.ts'
import type { GivenValue } from '../../run/statement/row-condition.ts'
import { shapeOf } from '../../run/statement/statement-shape.ts'
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
  const known = rows && first !== undefined ? rows.equals : new Map<string, GivenValue>()
  const equal = [...known].flatMap(([column, given]): BoundValue[] => {
    const value = valueOf(given, parameters)
    if (value === undefined || first === undefined) return []
    return [{ table: first, column, value, inserted: write === 'insert' }]
  })
  // Of several tables nobody says here whose column it is: it may be that of each.
  const compared = comparisonsIn(text).flatMap(({ column, parameter }) => {
    const value = parameters[parameter - 1]
    if (value === undefined || value === null || known.has(column)) return []
    // A row that is inserted has all its values in `known`.
    if (rows && write === 'insert') return []
    return tables.flatMap((table) =>
      elementsOf(value).map((one): BoundValue => ({ table, column, value: one, inserted: false })),
    )
  })
  return [...equal, ...compared]
}

/** `{1,"2"}` → `1`, `2`: the array of `= ANY ($1)`. One with escapes, or with arrays inside, is left as it is. */
function elementsOf(value: string): readonly string[] {
  if (!/^\{(?:"[^"\\]*"|[^{}",\\]+)(?:,(?:"[^"\\]*"|[^{}",\\]+))*\}$/.test(value)) return [value]
  const elements = value.slice(1, -1).matchAll(/"([^"]*)"|([^",]+)/g)
  return [...elements].map(([, quoted, bare]) => quoted ?? bare ?? '')
}

function valueOf(
  { source }: GivenValue,
  parameters: readonly (string | null)[],
): string | undefined {
  if ('parameter' in source) return parameters[source.parameter - 1] ?? undefined
  return 'number' in source ? source.number : source.string
}
