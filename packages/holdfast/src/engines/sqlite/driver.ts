import type { Driver, Row, Statement, Transaction } from '../../core/driver.ts'
import type { SqliteEngine } from './engine.ts'
import type { Writer } from './tx/writer.ts'

/** A driver for SQLite. */
export interface SqliteDriver<Tx> extends Driver<Tx> {
  readonly engine: SqliteEngine
  join(tx: Tx): SqliteTransaction<Tx>
  /** Who writes to its file, as far as this process knows. Opens a connection the first time. */
  writer(): Writer
  /** Closes the connections that it has opened. Call it when nothing uses them any more, after `close` of Holdfast. */
  close(): void
}

/** How the right to write is waited for. */
export interface WriterTerms {
  /** Ask once. */
  readonly attempt: boolean
  /** `undefined` waits for ever. */
  readonly limitMs: number | undefined
  /** What it is wanted for, for people who wait for it. */
  readonly names: readonly string[]
  /** Changes no row, in a transaction that has begun already. @defaultValue one of a table of ours */
  readonly by?: Statement
}

/** A transaction on SQLite: an open one, or one of ours that begins with `takeWriter`. */
export interface SqliteTransaction<Tx> extends Transaction<Tx> {
  /** It is one of ours: from its beginning on it has the right to write. */
  readonly isOurs: boolean
  /**
   * Waits until nobody else writes to the file, and keeps it so until the transaction ends. Fails with an error that
   * `isBusy` knows when the wait is over, and with one that `isOldSnapshot` knows if the transaction can never write.
   */
  takeWriter(terms: WriterTerms): Promise<void>
}

/** A statement that gives no rows is answered with one that says how many it has changed. */
export function affectedBy([done]: readonly Row[]): number {
  return Number(done?.['#affected'] ?? 0)
}

/** The engine's own rooms get it as what they know. */
export function sqliteOf<Tx>(transaction: Transaction<Tx>): SqliteTransaction<Tx> {
  return transaction as SqliteTransaction<Tx>
}

/** The engine's own rooms get it as what they know. */
export function sqliteDriverOf<Tx>(driver: Driver<Tx>): SqliteDriver<Tx> {
  return driver as SqliteDriver<Tx>
}
