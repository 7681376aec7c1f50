import { statSync } from 'node:fs'
import type { Row, Value } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { processWide } from '../../core/process-wide.ts'
import { assertFile, unfit } from '../../engines/sqlite/file-fit.ts'
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
  /** Of a handle that something else makes: whether what it sends passes the leash. @throws DRIVER_HANDLE_INVALID */
  assertHeld?(native: Tx, leash: SqliteLeash): Promise<void>
  close(): void
}

/** By what the file system knows a file that has this name now. */
function fileNumber(file: string): string | undefined {
  try {
    const { dev, ino } = statSync(file, { bigint: true })
    return `${dev}:${ino}`
  } catch {
    return undefined
  }
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
  /** Which file each connection has open, by its name and its number then. */
  readonly #opened = new WeakMap<SqliteConnection<Tx>, readonly [string, string | undefined]>()

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
    if (this.#alone?.isOpen === true && this.#isReplaced(this.#alone)) this.#alone.close()
    if (this.#alone?.isOpen !== true) this.#alone = this.#open()
    return this.#alone
  }

  /** For a transaction, which gives it back as it was. */
  take(): SqliteConnection<Tx> {
    const idle = this.#idle
    this.#idle = undefined
    if (idle?.isOpen === true && this.#isReplaced(idle)) idle.close()
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

  /**
   * What is written into a file that has lost its name, by a restored backup for one, nobody will find.
   *
   * @throws ENGINE_FILE_UNFIT
   */
  assertSameFile(connection: SqliteConnection<Tx>): void {
    if (this.#isReplaced(connection))
      throw unfit('it was replaced or deleted since it was opened, and nothing is saved')
  }

  #isReplaced(connection: SqliteConnection<Tx>): boolean {
    const [file = '', opened] = this.#opened.get(connection) ?? []
    return opened !== undefined && opened !== fileNumber(file)
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
      const file = assertFile(connection.send(facts.text))
      this.#writer ??= writerOf(file)
      this.#opened.set(connection, [file, fileNumber(file)])
    } catch (error) {
      connection.close()
      throw error
    }
    return connection
  }
}
