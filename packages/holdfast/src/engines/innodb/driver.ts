import type { Driver, Row, Transaction } from '../../core/driver.ts'
import type { InnodbEngine } from './engine.ts'
import type { Quotes } from './tx/transaction-control.ts'

/** A driver for MariaDB and MySQL. */
export interface InnodbDriver<Tx> extends Driver<Tx> {
  readonly engine: InnodbEngine
  join(tx: Tx): InnodbTransaction<Tx>
}

/** An open transaction on MariaDB or MySQL. */
export interface InnodbTransaction<Tx> extends Transaction<Tx> {
  /** What the facts about its server are known by: the driver. */
  readonly server: Pick<Driver<never>, 'alone'>
  /** How the server numbers its connection; 0 where the client does not show it. */
  readonly connectionId: number
  /** What all handles of one transaction have in common. */
  readonly whole: object
  /** A plain read shows what is committed by then: one of ours, at READ COMMITTED. Of others the level is not known. */
  readonly readsFresh: boolean
  /** Whether a transaction is open, asked of the server where the client does not show it. */
  isOpen(): Promise<boolean>
}

/**
 * A statement without rows is answered with one: how many rows it has found and, where the client shows it, whether a
 * transaction is open after it.
 */
export function affectedBy([done]: readonly Row[]): number {
  return Number(done?.['#affected'] ?? 0)
}

/** Not every client shows it. */
export function openAfter([done]: readonly Row[]): boolean | undefined {
  return done?.['#open'] as boolean | undefined
}

/** Flags of what the server says of a session. The last is MariaDB's alone. */
const [autocommit, noBackslashes, ansiQuotes] = [2, 512, 32_768]

/** Whether autocommit is on after this statement; not if the client does not show it. */
export function commitsEachAfter([done]: readonly Row[]): boolean {
  const status = done?.['#status']
  return typeof status === 'number' && (status & autocommit) !== 0
}

/** What quotes mean after this statement, where the client shows it. */
export function quotesAfter(
  [done]: readonly Row[],
  dialect: 'mariadb' | 'mysql' | undefined,
): Quotes | undefined {
  const status = done?.['#status']
  if (typeof status !== 'number') return undefined
  const backslashes = (status & noBackslashes) === 0
  return dialect === 'mariadb'
    ? { backslashes, ansi: (status & ansiQuotes) !== 0 }
    : { backslashes }
}

/** The engine's own rooms get it as what they know. */
export function innodbOf<Tx>(transaction: Transaction<Tx>): InnodbTransaction<Tx> {
  return transaction as InnodbTransaction<Tx>
}
