/** What this room asks of a database. Each engine that can lock rows brings one `RowEngine`. */
import type { CallSite } from '../core/locks/call-site.ts'
import type { Driver, Row, Transaction } from '../core/driver.ts'
import type { EngineName } from '../core/engine.ts'
import type { TableName } from '../core/table-name.ts'
import type { WaitTerms } from '../core/options/wait.ts'

/** Row-level lock strengths, strongest first. */
export type RowStrength = 'update' | 'no key update' | 'share' | 'key share'

/** Table-level lock modes, weakest first, as SQL spells them. */
export type TableLockMode =
  | 'access share'
  | 'row share'
  | 'row exclusive'
  | 'share update exclusive'
  | 'share'
  | 'share row exclusive'
  | 'exclusive'
  | 'access exclusive'

/** Which rows a call is about. */
export interface RowTarget {
  readonly table: TableName
  readonly keyColumns: readonly string[]
}

/** Rows with a version: a whole number that every change counts up by one. */
export interface VersionedTarget extends RowTarget {
  readonly versionColumn: string
}

/** New values by column. Dates go as ISO text, bytes as hex, objects as JSON. */
export type SetValues = Readonly<Record<string, unknown>>

/** Which columns come back; all of them if `undefined`. */
export type Columns = readonly string[] | undefined

/** The key columns of one row, as text. */
export type KeyFields = Readonly<Record<string, string>>

/** What became of one row, or of a key without one. */
export interface RowAnswer {
  /** Where the key is among those given, from 0: more than once, if keys are equal as the server reads them. */
  readonly positions: readonly number[]
  readonly locked: boolean
  /** The row was there when the statement began. Only told where rows are passed over. */
  readonly there: boolean
  /** The version as text, which JavaScript does not round; `undefined` if it was not asked for, or is NULL. */
  readonly version: string | undefined
  readonly row: Row
}

export interface RowsToLock {
  readonly target: RowTarget
  readonly keys: readonly KeyFields[]
  readonly strength: RowStrength
  readonly wait: WaitTerms
  readonly columns: Columns
  readonly versionColumn: string | undefined
  readonly keepTransaction: boolean
  /** Where the rows were asked for. */
  readonly site: CallSite
}

export interface VersionedChange {
  readonly target: VersionedTarget
  readonly key: KeyFields
  readonly version: string
  readonly set: SetValues
  readonly columns: Columns
  readonly wait: WaitTerms
  readonly site: CallSite
}

export interface VersionedRead {
  readonly target: VersionedTarget
  readonly key: KeyFields
  readonly columns: Columns
}

/** A row with its version as text, which JavaScript does not round; `undefined` if that is NULL. */
export interface VersionedRow {
  readonly version: string | undefined
  readonly row: Row
}

export interface TableToLock {
  readonly table: TableName
  readonly mode: TableLockMode
  readonly wait: WaitTerms
  readonly keepTransaction: boolean
}

/**
 * Of each: what is not granted in time fails with ROWS_TIMEOUT or ROWS_BUSY and whoever is in the way, and what there
 * is no transaction for with ROWS_OUTSIDE_TRANSACTION.
 */
export interface RowEngine {
  /** Whose it is; a driver for another product is refused. */
  readonly of: EngineName
  /** Names of columns that differ in case alone are the same. */
  readonly foldsNames?: boolean
  /** Locks rows in the order of their keys. @throws ROWS_KEY_INVALID, LOCK_ORDER */
  lock<Tx>(
    driver: Driver<Tx>,
    transaction: Transaction<Tx>,
    call: RowsToLock,
  ): Promise<readonly RowAnswer[]>
  /** Changes rows that have this version, counts it up, and gives them as they are then. @throws LOCK_ORDER */
  change<Tx>(
    driver: Driver<Tx>,
    transaction: Transaction<Tx>,
    call: VersionedChange,
  ): Promise<readonly VersionedRow[]>
  /** Reads a row that need not be waited for. */
  read<Tx>(
    driver: Driver<Tx>,
    transaction: Transaction<Tx>,
    call: VersionedRead,
  ): Promise<VersionedRow | undefined>
  /** Reads a row in a transaction of ours, whose table may be locked. */
  readWithin<Tx>(
    driver: Driver<Tx>,
    transaction: Transaction<Tx>,
    call: VersionedRead & { readonly wait: WaitTerms },
  ): Promise<VersionedRow | undefined>
  /** Counts the version up, unless it has moved; run under the row's lock. Whether something kept it from that. */
  count<Tx>(
    driver: Driver<Tx>,
    transaction: Transaction<Tx>,
    call: VersionedRead & { readonly version: string; readonly wait: WaitTerms },
  ): Promise<'counted' | 'suppressed'>
  lockTable<Tx>(driver: Driver<Tx>, transaction: Transaction<Tx>, call: TableToLock): Promise<void>
}
