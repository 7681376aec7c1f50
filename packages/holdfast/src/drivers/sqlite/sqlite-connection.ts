import type { Row, Value } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { processWide } from '../../core/process-wide.ts'
import { assertFile } from '../../engines/sqlite/file-fit.ts'
import { facts, noTimeout } from '../../engines/sqlite/tx/transaction.ts'
import { type Writer, writerOf } from '../../engines/sqlite/tx/writer.ts'
import type { SqliteLeash } from './sqlite-leash.ts'

/** A connection in words that `node:sqlite` and `better-sqlite3` have in common. Everything is answered at once. */
export interface SqliteConnection<Tx> {
  /** What it is known by. */
  readonly native: object
  readonly isOpen: boolean
  /** Whether it is in a transaction. */
  readonly isTransaction: boolean
  send(text: string, values?: readonly Value[]): readonly Row[]
  /** Of a text without values, whose answer nobody reads: nothing is prepared, and nothing left to be collected. */
  run(text: string): void
  /** The caller's handle, with the leash around what it sends. */
  leashed(leash: SqliteLeash): Tx
  close(): void
}

/** Connections that a driver has been given for itself. */
const given = /* @__PURE__ */ processWide('sqlite-given/1', () => new WeakSet<object>())

/**
 * The connections of one driver to one file: one for transactions, which come one after the other, and one for
 * statements on their own. What others send on a connection would be a part of whatever transaction is open on it, so
 * these are ours alone.
 */
export class SqliteConnections<Tx extends object> {
  readonly #make: () => SqliteConnection<Tx>
  #alone: SqliteConnection<Tx> | undefined
  #idle: SqliteConnection<Tx> | undefined
  #writer: Writer | undefined

  constructor(make: () => SqliteConnection<Tx>) {
    this.#make = make
  }

  /** @throws ENGINE_FILE_UNFIT, ENGINE_VERSION, TX_SESSION_SHARED */
  get writer(): Writer {
    // Two at once, so that a function that gives the same one again is found out before anything is locked.
    this.#alone ??= this.#open()
    this.#idle ??= this.#writer === undefined ? this.#open() : undefined
    return this.#writer as Writer
  }

  get alone(): SqliteConnection<Tx> {
    if (this.#alone?.isOpen !== true) this.#alone = this.#open()
    return this.#alone
  }

  /** For a transaction, which gives it back as it was. */
  take(): SqliteConnection<Tx> {
    const idle = this.#idle
    this.#idle = undefined
    if (idle?.isOpen !== true) return this.#open()
    // A body may have set another one.
    idle.run(noTimeout)
    return idle
  }

  giveBack(connection: SqliteConnection<Tx>): void {
    const isClean = connection.isOpen && !connection.isTransaction
    if (this.#idle === undefined && isClean) this.#idle = connection
    else connection.close()
  }

  close(): void {
    for (const each of [this.#alone, this.#idle]) if (each?.isOpen === true) each.close()
    this.#alone = this.#idle = this.#writer = undefined
  }

  #open(): SqliteConnection<Tx> {
    const connection = this.#make()
    if (given.has(connection.native) || connection.isTransaction) {
      throw holdfastError('TX_SESSION_SHARED', {
        details: {
          subject: 'the function that opens the database gave a connection that is in use',
        },
      })
    }
    given.add(connection.native)
    try {
      connection.send(noTimeout)
      this.#writer ??= writerOf(assertFile(connection.send(facts.text)))
    } catch (error) {
      connection.close()
      throw error
    }
    return connection
  }
}
