/** Whether code inside of a statement may leave something in its session for the next run to find. */
import type { Settlement } from '../../gate/unit.ts'
import type { Catalogue } from '../catalogue/catalogue.ts'
import { lookInsideUnseen, type PreparedShapes } from './inner-parts.ts'
import { resolveNames } from './names.ts'
import type { StatementShape } from './statement-shape.ts'

/** By the code that may have run; whether it did leave something nobody has to see. */
export function leavesBehind(
  settlement: Settlement,
  shapes: readonly StatementShape[],
  catalogue: Catalogue,
  prepared: PreparedShapes,
): boolean {
  return shapes.some(
    (shape) =>
      ['query', 'lock', 'unknown'].includes(shape.kind) &&
      !resolveNames(shape, catalogue).plain &&
      lookInsideUnseen(settlement, shape, catalogue, prepared).leaves,
  )
}
