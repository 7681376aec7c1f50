import { assertClient } from '../core/client-kind.ts'
import type { Row, Value } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import type { InnodbDriver } from '../engines/innodb/driver.ts'
import { nothing } from '../engines/innodb/tx/transaction.ts'
import type { InnodbConnection } from './innodb/innodb-connection.ts'
import { assertNoOptions } from './parts/no-options.ts'
import {
  assertKysely,
  assertKyselyHandle,
  type KyselyDatabase,
  type KyselyHandle,
  kyselyQuery,
  kyselyState,
  type KyselyTransactionOf,
  nameEnded,
} from './orm/kysely-handle.ts'
import { rowsOf } from './innodb/mysql2-connection.ts'
import {
  lend,
  pass,
  type Passing,
  type Taking,
  takingOf,
  watchLending,
} from './innodb/mysql2-lending.ts'
import { type Mysql2CorePool, mysql2OrmDriver } from './innodb/mysql2-orm.ts'

export type { KyselyDatabase, KyselyTransactionOf } from './orm/kysely-handle.ts'
export type { Mysql2CorePool } from './innodb/mysql2-orm.ts'

/**
 * Holdfast on Kysely with `MysqlDialect`, for MariaDB and MySQL. Pass the pool of the dialect, which Kysely hides. A
 * caller's transaction is what `db.transaction().execute()` hands to its callback, or a controlled transaction.
 *
 * @example
 * import { createPool } from 'mysql2'
 * const pool = createPool({ uri })
 * const db = new Kysely<DB>({ dialect: new MysqlDialect({ pool }) })
 * const hf = createHoldfast(fromKyselyMysql(db, pool))
 */
export function fromKyselyMysql<Db extends KyselyDatabase>(
  db: Db,
  pool: Mysql2CorePool,
  options?: Record<never, never>,
): InnodbDriver<KyselyTransactionOf<Db>> {
  const by = 'fromKyselyMysql'
  const is = 'a Kysely instance with MysqlDialect'
  assertKysely(db, { kind: 'kyselyMysql', by, is, engine: 'innodb' })
  assertCorePool(pool, by)
  assertNoOptions(options, by)
  type Tx = KyselyTransactionOf<Db> & object
  watchLending(pool)
  return mysql2OrmDriver<Tx>({
    name: 'kysely',
    pool: () => pool,
    assertRoot() {
      if (db.isTransaction) throw holdfastError('TX_NESTED')
    },
    open: (connection, callback) =>
      lend(pool, connection, (isTaken) =>
        db.transaction().execute(async (trx) => {
          if (!isTaken()) throw otherPool()
          await lookAt(trx as KyselyHandle, pool)
          await callback(trx as Tx)
        }),
      ),
    beneath(tx) {
      const handle = assertKyselyHandle(tx)
      return kyselyState(handle) === 'none' ? undefined : new HandleConnection(handle, pool)
    },
  })
}

/** Statements go through Kysely, which refuses them once the transaction is over. */
class HandleConnection implements InnodbConnection {
  readonly native: KyselyHandle
  readonly sole: object
  readonly #pool: object

  constructor(handle: KyselyHandle, pool: object) {
    this.native = handle
    this.sole = handle
    this.#pool = pool
  }

  get id(): number {
    return seen.get(this.native)?.id ?? 0
  }

  get whole(): object | undefined {
    return seen.get(this.native)?.taking
  }

  async send(text: string, values: readonly Value[] = []): Promise<readonly Row[]> {
    if (!seen.has(this.native)) await lookAt(this.native, this.#pool)
    const { answer } = await sent(this.native, { text, isLook: false }, values)
    return rowsOf(answer)
  }

  release(): void {
    // It is the caller's.
  }

  destroy(): void {
    // It is the caller's.
  }
}

/** What is beneath handles. */
const seen = new WeakMap<object, { readonly id: number; readonly taking: Taking }>()

async function lookAt(handle: KyselyHandle, pool: object): Promise<void> {
  // If it is sent after all, it does nothing.
  const { connection } = await sent(handle, { text: nothing, isLook: true }, [])
  const taking = connection && takingOf(connection)
  if (connection === undefined || taking?.pool !== pool) throw otherPool()
  seen.set(handle, { id: connection.threadId, taking })
}

async function sent(
  handle: KyselyHandle,
  statement: Passing,
  values: readonly unknown[],
): Promise<Passing> {
  const given = [...values]
  pass(given, statement)
  await handle.withoutPlugins().executeQuery(kyselyQuery(statement.text, given)).catch(nameEnded)
  return statement
}

function otherPool(): Error {
  const subject = 'fromKyselyMysql was not given the pool of the dialect of this Kysely instance'
  return holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}

function assertCorePool(pool: unknown, by: string): void {
  const { getConnection, promise } = (pool ?? {}) as Partial<Mysql2CorePool>
  const fits = typeof getConnection === 'function' && typeof promise === 'function'
  const is = 'the pool of the dialect, of mysql2 without promises'
  assertClient(pool, { kind: 'mysql2CallbackPool', by, is, engine: 'innodb' }, fits)
}
