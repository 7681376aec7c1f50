/** `holdfast/rows`: row and table locks, on PostgreSQL. */
import type { Driver } from '../core/driver.ts'
import { postgresRows } from '../engines/postgres/rows/row-engine.ts'
import { type Rows, rowsOver, type RowsOptions } from '../rows/rows.ts'

export type { TableName } from '../core/table-name.ts'
export type { RowStrength, SetValues, TableLockMode } from '../rows/engine.ts'
export type { LockedRows, LockRowsOptions } from '../rows/lock-rows.ts'
export type { LockTableOptions } from '../rows/lock-table.ts'
export type {
  DrizzleTable,
  MikroOrmTable,
  OrmTable,
  PrismaTable,
  SequelizeTable,
  TypeOrmTable,
} from '../rows/orm-table.ts'
export type { KeyOptions, KeyValue, RowKey, TableInput, TableOf } from '../rows/row-key.ts'
export type { RowWait, TableWait } from '../rows/row-wait.ts'
export type { Rows, RowsOptions } from '../rows/rows.ts'
export type { VersionedUpdate, VersionOptions } from '../rows/update-versioned.ts'
export type { VersionCheck, WorkAttempt } from '../rows/with-version-check.ts'

/** Row and table locks over a driver. */
export function createRows<Tx>(driver: Driver<Tx>, options: RowsOptions = {}): Rows<Tx> {
  return rowsOver(postgresRows, driver, options)
}
