import type { ClaimsEngine } from '../../../claims/engine.ts'
import { missingSchema } from '../sql/call-function.ts'
import { addWork } from './add-work.ts'
import { deadRows } from './dead-rows.ts'
import { leasedRows } from './leased-rows.ts'
import { joinedTo } from './sending.ts'
import { checkTable, checkUse } from './table-check.ts'
import { overTable } from './over-table.ts'
import { takenRows } from './taken-rows.ts'

/** PostgreSQL's part of claims. */
export const postgresClaims: ClaimsEngine = {
  of: 'postgres',
  ...deadRows,
  hears: true,
  leased: leasedRows,
  taken: takenRows,
  joined: joinedTo,
  check: (driver, settings) => checkTable(driver, settings, checkUse),
  overTable,
  enqueue: addWork,
  missing: (error) => missingSchema(error) ?? error,
}
