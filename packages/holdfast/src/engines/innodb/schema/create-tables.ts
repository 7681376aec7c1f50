import type { InnodbDriver } from '../driver.ts'
import { leaseTables } from '../leases/lease-tables.ts'
import { assertLockTable } from '../locks/lock-table-fit.ts'
import { onceTables } from '../once/once-table.ts'
import { scheduleTables } from '../schedule/schedule-tables.ts'
import { serverOf } from '../server.ts'
import { createLockTable } from './lock-table.ts'
import { assertOwnTable, createOwnTable, type OwnTable } from './own-table.ts'

/** Beside that of locks. */
export const ownTables: readonly OwnTable[] = [leaseTables, onceTables, scheduleTables].flatMap(
  (tables: Readonly<Record<string, OwnTable>>) => Object.values(tables),
)

/**
 * Makes the tables that are not there, one after the other, and looks whether all are as they have to be. Each is made
 * by a statement that commits by itself: whoever was stopped in between goes on where it was.
 */
export async function createTablesOn<Tx>(
  driver: InnodbDriver<Tx>,
  chosen: string | undefined,
): Promise<void> {
  const { alone } = driver
  const facts = await serverOf(driver, alone)
  const database = chosen ?? facts.database
  await alone.query(createLockTable(chosen))
  await assertLockTable(driver, alone, { database })
  for (const table of ownTables) {
    await alone.query(createOwnTable(table, chosen))
    await assertOwnTable(driver, alone, table, database)
  }
}
