import type { Statement } from '../../../core/driver.ts'
import { claimTables } from '../claims/claims.ts'
import { leaseTables } from '../leases/leases.ts'
import { onceTables } from '../once/once.ts'
import { scheduleTables } from '../schedule/schedule.ts'
import { plain } from '../tx/transaction.ts'

/** Tables of Holdfast, in the order in which they are made. */
export const createTables: readonly Statement[] = [
  // Stays empty: an UPDATE of no row takes the right to write in a transaction that is open already.
  plain('CREATE TABLE IF NOT EXISTS holdfast_lock (name TEXT PRIMARY KEY) WITHOUT ROWID'),
  ...onceTables,
  ...leaseTables,
  ...scheduleTables,
  ...claimTables,
]
