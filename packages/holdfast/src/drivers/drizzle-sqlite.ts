import { holdfastError } from '../core/errors.ts'
import type { SqliteDriver } from '../engines/sqlite/driver.ts'
import { assertNoOptions } from './parts/no-options.ts'
import { type SqliteDatabase, sqliteOrmDriver } from './sqlite/sqlite-orm.ts'

export type { SqliteDatabase } from './sqlite/sqlite-orm.ts'

/** The part of a Drizzle database on SQLite by which we know one. */
export interface DrizzleSqliteDatabase {
  run(query: never): unknown
  all(query: never): unknown
  transaction(body: never): unknown
}

/**
 * Holdfast on Drizzle over `better-sqlite3`. The first function opens the database file anew each time, the second makes a
 * Drizzle database over it: bodies get one that is held to their transaction, and may wait in it, which those of
 * Drizzle's own `db.transaction` may not.
 *
 * @example
 * import { drizzle } from 'drizzle-orm/better-sqlite3'
 * const driver = fromDrizzleSqlite(
 *   () => new Database('app.db'),
 *   (database) => drizzle(database, { schema }),
 * )
 * @throws DRIVER_HANDLE_INVALID
 */
export function fromDrizzleSqlite<
  Database extends SqliteDatabase,
  Db extends DrizzleSqliteDatabase,
>(
  open: () => Database,
  over: (database: Database) => Db,
  options?: Record<never, never>,
): SqliteDriver<Db> {
  const by = 'fromDrizzleSqlite'
  assertNoOptions(options, by)
  return sqliteOrmDriver<Database, Db>({
    name: 'drizzle-orm',
    by,
    example: '() => new Database(path), (database) => drizzle(database)',
    open,
    over: over === undefined ? (over as never) : (database) => drizzleOf(over(database)),
    ask: (made, text) => made.all(text as never),
  })
}

/** @throws DRIVER_HANDLE_INVALID */
function drizzleOf<Db extends object>(made: Db): Db {
  const { run, all, transaction } = (made ?? {}) as Partial<DrizzleSqliteDatabase>
  if ([run, all, transaction].every((each) => typeof each === 'function')) return made
  const subject = 'the function was to make a Drizzle database on SQLite'
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
