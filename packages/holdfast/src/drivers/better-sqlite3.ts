import { holdfastError } from '../core/errors.ts'
import type { Row } from '../core/driver.ts'
import type { SqliteDriver } from '../engines/sqlite/driver.ts'
import { oneRow } from '../engines/sqlite/sql/text.ts'
import { assertNoOptions } from './parts/no-options.ts'
import { boundOf } from './node-sqlite.ts'
import type { SqliteConnection } from './sqlite/sqlite-connection.ts'
import { assertOpen, sqliteDriverOver } from './sqlite/sqlite-driver.ts'
import { leashedConnection } from './sqlite/sqlite-handle.ts'
import { exactRows, givesBigints } from './sqlite/sqlite-numbers.ts'

/** The part of a `Database` of `better-sqlite3` that we use. */
export interface BetterSqlite3Database {
  readonly open: boolean
  readonly inTransaction: boolean
  prepare(sql: string): {
    readonly reader: boolean
    safeIntegers(on: boolean): unknown
    get(): unknown
    all(...values: unknown[]): unknown[]
    run(...values: unknown[]): { readonly changes: number }
  }
  exec(sql: string): unknown
  close(): unknown
}

/**
 * Holdfast on `better-sqlite3`. The function opens the database file anew each time: Holdfast's transactions are on
 * connections that nobody else uses. Set what your own connections are set to in it, and WAL.
 *
 * @example const driver = fromBetterSqlite3(() => new Database('app.db'))
 * @throws DRIVER_HANDLE_INVALID
 */
export function fromBetterSqlite3<Database extends BetterSqlite3Database>(
  open: () => Database,
  options?: Record<never, never>,
): SqliteDriver<Database> {
  assertOpen(open, 'fromBetterSqlite3', '() => new Database(path)')
  assertNoOptions(options, 'fromBetterSqlite3')
  return sqliteDriverOver({
    name: 'better-sqlite3',
    open: () => betterSqlite3Connection(open()),
    connectionOf: betterSqlite3Connection,
  })
}

/** @throws DRIVER_HANDLE_INVALID */
export function betterSqlite3Connection<Tx extends BetterSqlite3Database>(
  native: Tx,
): SqliteConnection<Tx> {
  const { inTransaction, open } = (native ?? {}) as Partial<BetterSqlite3Database>
  if (typeof inTransaction !== 'boolean' || typeof open !== 'boolean') {
    const subject = 'a Database of better-sqlite3 expected'
    throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
  }
  // Of libsql, which has the same methods, and leaves statements unfinished that keep COMMIT from being done.
  if ('maxWriteReplicationIndex' in native) {
    const subject = 'libsql is not supported: use better-sqlite3 or node:sqlite for the same file'
    throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
  }
  let keepsBigints: boolean | undefined
  return {
    native,
    get isOpen() {
      return native.open
    },
    get isTransaction() {
      return native.inTransaction
    },
    send(text, values = []) {
      const statement = native.prepare(text)
      const bound = values.map(boundOf)
      if (statement.reader) {
        keepsBigints ??= givesBigints(native.prepare(oneRow).get())
        statement.safeIntegers(true)
        return exactRows(statement.all(...bound) as Row[], keepsBigints)
      }
      return [{ '#affected': statement.run(...bound).changes }]
    },
    run: (text) => void native.exec(text),
    leashed: (leash) => leashedConnection(native, leash),
    close: () => void native.close(),
  }
}
