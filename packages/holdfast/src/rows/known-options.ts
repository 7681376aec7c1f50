import type { KnownOptions } from '../core/known-options.ts'
import { runOptions, txOptions } from '../tx/known-options.ts'
import type { TableName } from '../engines/postgres/sql/identifier.ts'
import type { RowsOptions } from './index.ts'
import type { LockRowsOptions } from './lock-rows.ts'
import type { LockTableOptions } from './lock-table.ts'
import type { VersionedUpdate, VersionOptions } from './update-versioned.ts'
import type { VersionCheck } from './with-version-check.ts'

export const tableFields: KnownOptions<TableName> = {
  schema: 'checked',
  table: 'checked',
}

export const rowsOptions: KnownOptions<RowsOptions> = {
  wait: 'checked',
  tx: txOptions,
}

export const lockTableOptions: KnownOptions<LockTableOptions> = {
  wait: 'checked',
  keepTransaction: 'boolean',
}

export const lockRowsOptions: KnownOptions<LockRowsOptions> = {
  ...lockTableOptions,
  strength: 'checked',
  expectAll: 'boolean',
  columns: 'texts',
  keyColumns: 'texts',
}

const versionOptions: KnownOptions<VersionOptions> = {
  versionColumn: 'text',
  keyColumns: 'texts',
}

export const versionedUpdate: KnownOptions<VersionedUpdate> = {
  ...versionOptions,
  version: 'checked',
  set: 'checked',
  columns: 'texts',
  wait: 'checked',
}

export const versionCheck: KnownOptions<VersionCheck<never, never, never, never>> = {
  ...versionOptions,
  work: 'function',
  write: 'function',
  attempts: 'checked',
  countVersion: 'boolean',
  wait: 'checked',
  columns: 'texts',
  signal: 'signal',
  onRetry: 'function',
  transaction: runOptions,
}
