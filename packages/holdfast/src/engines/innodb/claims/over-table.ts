import type { OverTable } from '../../../claims/engine.ts'
import { isHole, tableUnfit } from '../../../core/errors/claim-finding.ts'
import type { Executor } from '../../../core/driver.ts'
import { isHoldfastError } from '../../../core/errors.ts'
import { within } from '../../../core/within.ts'
import { errnoOf } from '../errno.ts'
import { checkUse } from './table-check.ts'

/** How long an error may be held back to say what the table lacks. */
const lookMs = 1_000

/** Of a table, a database, a column, a right. Those of a trigger have the same numbers. */
const perhapsUnfit: ReadonlySet<number | undefined> = new Set([1044, 1049, 1054, 1142, 1143, 1146])

/**
 * Answers of statements over the caller's table; `beside` is where the table is looked at if one of them fails.
 *
 * @throws CLAIM_TABLE_UNFIT if the table is why
 */
export async function overTable<T>(
  settings: OverTable,
  beside: Executor,
  asking: Promise<T>,
): Promise<T> {
  try {
    return await asking
  } catch (error) {
    if (isHoldfastError(error) || !perhapsUnfit.has(errnoOf(error))) throw error
    const looking = checkUse(beside, settings).catch(() => undefined)
    const holes = (await within(looking, lookMs))?.findings.filter(isHole) ?? []
    throw holes.length > 0 ? tableUnfit(settings.layout.table.table, holes, error) : error
  }
}
