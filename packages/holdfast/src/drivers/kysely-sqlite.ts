import { holdfastError } from '../core/errors.ts'
import type { SqliteDriver } from '../engines/sqlite/driver.ts'
import { assertNoOptions } from './parts/no-options.ts'
import { type KyselyHandle, kyselyQuery } from './orm/kysely-handle.ts'
import { type SqliteDatabase, sqliteOrmDriver } from './sqlite/sqlite-orm.ts'

export type { SqliteDatabase } from './sqlite/sqlite-orm.ts'

/**
 * Holdfast on Kysely with `SqliteDialect`. The first function opens the database file anew each time, the second makes a
 * Kysely instance over it: bodies get one that is held to their transaction.
 *
 * @example
 * const driver = fromKyselySqlite(
 *   () => new Database('app.db'),
 *   (database) => new Kysely<DB>({ dialect: new SqliteDialect({ database }) }),
 * )
 * @throws DRIVER_HANDLE_INVALID
 */
export function fromKyselySqlite<Database extends SqliteDatabase, Db extends object>(
  open: () => Database,
  over: (database: Database) => Db,
  options?: Record<never, never>,
): SqliteDriver<Db> {
  const by = 'fromKyselySqlite'
  assertNoOptions(options, by)
  return sqliteOrmDriver<Database, Db>({
    name: 'kysely',
    by,
    example: '() => new Database(path), (database) => new Kysely({ … })',
    open,
    over: over === undefined ? (over as never) : (database) => kyselyOf(over(database)),
    ask: (made, text) => (made as unknown as KyselyHandle).executeQuery(kyselyQuery(text, [])),
  })
}

/** @throws DRIVER_HANDLE_INVALID */
function kyselyOf<Db extends object>(made: Db): Db {
  const { executeQuery, isTransaction } = (made ?? {}) as Partial<KyselyHandle>
  if (typeof executeQuery === 'function' && isTransaction === false) return made
  const subject = 'the function was to make a Kysely instance'
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
