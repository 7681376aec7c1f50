import type { ClaimsEngine, OverTable } from '../../../claims/engine.ts'
import { isHole, tableUnfit } from '../../../core/errors/claim-finding.ts'
import type { Executor } from '../../../core/driver.ts'
import { holdfastError, isHoldfastError } from '../../../core/errors.ts'
import { isMissingColumn, isMissingTable } from '../result-code.ts'
import { deadRows } from './dead-rows.ts'
import { leasedRows } from './leased-rows.ts'
import { checkTable, checkUse } from './table-check.ts'
import { takenRows } from './taken-rows.ts'
import type { ClaimFinding } from '../../../core/errors/error-details.ts'

/** SQLite's part of claims. */
export const sqliteClaims: ClaimsEngine = {
  of: 'sqlite',
  hears: false,
  ...deadRows,
  leased: leasedRows,
  taken: takenRows,
  async joined(driver, tx) {
    const transaction = driver.join(tx)
    if (transaction.state() === 'none') throw holdfastError('CLAIM_OUTSIDE_TRANSACTION')
    return transaction
  },
  check: async ({ alone }, settings) => await checkTable(alone, settings),
  overTable,
  enqueue() {
    throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'the table of work' } })
  },
  missing: (error) => error,
}

async function overTable<T>(settings: OverTable, beside: Executor, asking: Promise<T>): Promise<T> {
  try {
    return await asking
  } catch (error) {
    const isTable = isMissingTable(error)
    if (isHoldfastError(error) || !(isTable || isMissingColumn(error))) throw error
    const holes = (await checkUse(beside, settings)).filter(isHole)
    if (holes.some(explains)) throw tableUnfit(settings.layout.table.table, holes, error)
    // Of a trigger, whose tables are not these, or of ours.
    const isOurs = isTable && settings.perKey?.rate !== undefined
    throw isOurs ? holdfastError('SCHEMA_MISSING', { cause: error }) : error
  }
}

function explains({ code }: ClaimFinding): boolean {
  return code === 'table-missing' || code === 'column-missing'
}
