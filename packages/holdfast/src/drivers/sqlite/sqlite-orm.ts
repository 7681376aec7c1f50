import { holdfastError } from '../../core/errors.ts'
import type { SqliteDriver } from '../../engines/sqlite/driver.ts'
import { type BetterSqlite3Database, betterSqlite3Connection } from '../better-sqlite3.ts'
import { type NodeSqliteDatabase, nodeSqliteConnection } from '../node-sqlite.ts'
import type { SqliteConnection } from './sqlite-connection.ts'
import { assertOpen, sqliteDriverOver } from './sqlite-driver.ts'

/** A connection of one of the clients that ORMs have beneath them. */
export type SqliteDatabase = NodeSqliteDatabase | BetterSqlite3Database

/** How an ORM is made over a connection. */
export interface OrmOver<Database, Tx> {
  readonly name: string
  /** The function of the driver, for messages. */
  readonly by: string
  readonly example: string
  open(): Database
  over(database: Database): Tx
}

/**
 * An ORM over a client that answers at once. Each transaction gets an instance of its own, over a connection that is held
 * to that transaction: whatever the instance sends passes there, and nothing once the body has returned.
 */
export function sqliteOrmDriver<Database extends SqliteDatabase, Tx extends object>({
  name,
  by,
  example,
  open,
  over,
}: OrmOver<Database, Tx>): SqliteDriver<Tx> {
  assertOpen(open, by, example)
  if (typeof over !== 'function') {
    const subject = `${by} takes a function that makes the instance as well: ${by}(${example})`
    throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
  }
  return sqliteDriverOver<Tx>({
    name,
    open() {
      const connection = connectionOf(open())
      const { native, send, run, close } = connection
      return {
        native,
        get isOpen() {
          return connection.isOpen
        },
        get isTransaction() {
          return connection.isTransaction
        },
        send,
        run,
        leashed: (leash) => over(connection.leashed(leash)),
        close,
      }
    },
    // Whether a transaction of an instance of the caller's is still open, the ORM does not show.
    connectionOf() {
      const subject = `a handle that a body of Holdfast was given expected: on ${name}, use hf.transaction or hf.guard`
      throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
    },
  })
}

/** @throws DRIVER_HANDLE_INVALID */
function connectionOf<Database extends SqliteDatabase>(
  database: Database,
): SqliteConnection<Database> {
  const isNode = typeof (database as Partial<NodeSqliteDatabase> | undefined)?.isOpen === 'boolean'
  return (isNode
    ? nodeSqliteConnection(database as NodeSqliteDatabase)
    : betterSqlite3Connection(
        database as BetterSqlite3Database,
      )) as unknown as SqliteConnection<Database>
}
