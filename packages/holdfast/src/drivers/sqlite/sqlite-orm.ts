import { holdfastError } from '../../core/errors.ts'
import type { SqliteDriver } from '../../engines/sqlite/driver.ts'
import { ping } from '../../engines/sqlite/tx/transaction.ts'
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
  /** Has an instance send this text. */
  ask(instance: Tx, text: string): unknown
}

/** Long for a text that reads nothing: an instance of the caller's may be in a transaction that waits for this one. */
const askedWithinMs = 1_000

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
  ask,
}: OrmOver<Database, Tx>): SqliteDriver<Tx> {
  assertOpen(open, by, example)
  if (typeof over !== 'function') {
    const subject = `${by} takes a function that makes the instance as well: ${by}(${example})`
    throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
  }
  const elsewhere = (what: string): Error => {
    const subject = `${what}, so that bodies would be outside their transaction; make a new one over the connection that the function is given: ${by}(${example})`
    return holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
  }
  const made = new WeakSet<Tx>()
  let isProven = false
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
        leashed(leash) {
          const instance = over(connection.leashed(leash))
          if (made.has(instance)) throw elsewhere('the function gave the same instance twice')
          made.add(instance)
          return instance
        },
        // What the function does the first time it does each time: later transactions need not ask.
        async assertHeld(instance, leash) {
          if (isProven) return
          const before = leash.sent
          await withinMs(askedWithinMs, ask(instance, ping.text))
          if (leash.sent === before) throw elsewhere('the instance is on another connection')
          isProven = true
        },
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

/** Whatever came of it, and also if nothing does. */
async function withinMs(limitMs: number, asked: unknown): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined
  const over = new Promise<void>((resolve) => {
    timer = setTimeout(resolve, limitMs)
  })
  const answered = Promise.resolve(asked).then(noMatter, noMatter)
  await Promise.race([answered, over]).finally(() => clearTimeout(timer))
}

function noMatter(): void {}
