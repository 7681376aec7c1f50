import { holdfastError } from '../core/errors.ts'
import type { Row, Value } from '../core/driver.ts'
import type { SqliteDriver } from '../engines/sqlite/driver.ts'
import { oneRow } from '../engines/sqlite/sql/text.ts'
import { assertNoOptions } from './parts/no-options.ts'
import type { SqliteConnection } from './sqlite/sqlite-connection.ts'
import { assertOpen, sqliteDriverOver } from './sqlite/sqlite-driver.ts'
import { leashedConnection } from './sqlite/sqlite-handle.ts'
import { exactRows, givesBigints } from './sqlite/sqlite-numbers.ts'

/** The part of a `DatabaseSync` of `node:sqlite` that we use. */
export interface NodeSqliteDatabase {
  readonly isOpen: boolean
  readonly isTransaction: boolean
  prepare(sql: string): {
    all(...values: (null | number | bigint | string)[]): unknown[]
    run(...values: (null | number | bigint | string)[]): { readonly changes: number | bigint }
    columns(): readonly unknown[]
    setReturnArrays?(enabled: boolean): void
    setReadBigInts(enabled: boolean): void
  }
  exec(sql: string): void
  close(): void
}

/**
 * Holdfast on `node:sqlite`. The function opens the database file anew each time: Holdfast's transactions are on
 * connections that nobody else uses. Set what your own connections are set to in it, and WAL.
 *
 * @example const driver = fromNodeSqlite(() => new DatabaseSync('app.db'))
 * @throws DRIVER_HANDLE_INVALID
 */
export function fromNodeSqlite<Database extends NodeSqliteDatabase>(
  open: () => Database,
  options?: Record<never, never>,
): SqliteDriver<Database> {
  assertOpen(open, 'fromNodeSqlite', '() => new DatabaseSync(path)')
  assertNoOptions(options, 'fromNodeSqlite')
  return sqliteDriverOver({
    name: 'node:sqlite',
    open: () => nodeSqliteConnection(open()),
    connectionOf: nodeSqliteConnection,
  })
}

/** @throws DRIVER_HANDLE_INVALID */
export function nodeSqliteConnection<Tx extends NodeSqliteDatabase>(
  native: Tx,
): SqliteConnection<Tx> {
  const { isTransaction, isOpen } = (native ?? {}) as Partial<NodeSqliteDatabase>
  if (typeof isTransaction !== 'boolean' || typeof isOpen !== 'boolean') {
    const subject = 'an open DatabaseSync of node:sqlite expected'
    throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
  }
  let keepsBigints: boolean | undefined
  return {
    native,
    get isOpen() {
      return native.isOpen
    },
    get isTransaction() {
      return native.isTransaction
    },
    send(text, values = []) {
      const statement = native.prepare(text)
      // However the database was opened, our rows are objects.
      statement.setReturnArrays?.(false)
      const bound = values.map(boundOf)
      if (statement.columns().length > 0) {
        keepsBigints ??= givesBigints(native.prepare(oneRow).all()[0])
        statement.setReadBigInts(true)
        return exactRows(statement.all(...bound) as Row[], keepsBigints)
      }
      return [{ '#affected': statement.run(...bound).changes }]
    },
    run: (text) => native.exec(text),
    leashed: (leash) => leashedConnection(native, leash),
    close: () => native.close(),
  }
}

/** Both clients bind a number as one with a fraction, and take no booleans. */
export function boundOf(value: Value): null | number | bigint | string {
  if (typeof value === 'boolean') return value ? 1n : 0n
  return Number.isSafeInteger(value) ? BigInt(value as number) : value
}
