/** Code of the user's that the server runs inside of a statement: what `functions: 'atomic'` makes one statement. */
import type { Settlement } from '../../gate/unit.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { beyondInside, routinesOf } from './beyond.ts'
import { type Inside, lookInsideUnseen, type PreparedShapes } from './inner-parts.ts'
import { resolveNames } from './names.ts'
import type { StatementShape } from './statement-shape.ts'

/** Told by the names in it alone, so rather too much: `take()`, or the verb; undefined if there is none. */
export function runsInside(
  settlement: Settlement,
  shapes: readonly StatementShape[],
  catalogue: Catalogue,
  prepared: PreparedShapes,
): string | undefined {
  const names = shapes.flatMap((shape): string[] => {
    if (!['query', 'lock', 'unknown'].includes(shape.kind)) return []
    if (resolveNames(shape, catalogue).plain) return []
    const inside = lookInsideUnseen(settlement, shape, catalogue, prepared)
    if (!hasCode(inside) && beyondInside(shape, catalogue) === undefined) return []
    const routines = routinesOf(shape, catalogue)
    return routines.length > 0 ? routines.map((name) => `${name}()`) : [nameless(shape)]
  })
  return names.length === 0 ? undefined : [...new Set(names)].join(', ')
}

function hasCode({ parts, forgotten, leaves }: Inside): boolean {
  return leaves || parts.length > 0 || forgotten?.length !== 0
}

/** A block, or a view, or what nobody could read. */
function nameless({ verb }: StatementShape): string {
  return verb === '' ? 'a statement that was not understood' : verb.toUpperCase()
}
