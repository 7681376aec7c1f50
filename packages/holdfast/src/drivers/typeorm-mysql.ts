import { assertClient } from '../core/client-kind.ts'
import { holdfastError } from '../core/errors.ts'
import type { InnodbDriver } from '../engines/innodb/driver.ts'
import { assertNoOptions } from './parts/no-options.ts'
import { mysql2Connection } from './innodb/mysql2-connection.ts'
import { type Mysql2CorePool, mysql2OrmDriver } from './innodb/mysql2-orm.ts'
import type { Mysql2Core } from './innodb/mysql2-orm-leash.ts'
import type { TypeOrmTransactionOf } from './orm/typeorm-handle.ts'

export type { TypeOrmTransactionOf } from './orm/typeorm-handle.ts'

/** The part of a `DataSource` of type `mysql` or `mariadb` that we use. */
export interface TypeOrmMysqlDataSource {
  createQueryRunner(): unknown
  transaction(isolation: never, body: (manager: never) => Promise<unknown>): Promise<unknown>
}

interface Runner {
  readonly manager: unknown
  readonly isReleased: boolean
  /** Protected in the types. */
  databaseConnection?: Mysql2Core
  /** 1 in a transaction, more in savepoints; protected in the types. */
  readonly transactionDepth?: number
  startTransaction(): Promise<void>
  commitTransaction(): Promise<void>
  rollbackTransaction(): Promise<void>
  release(): Promise<void>
}

interface Manager {
  query?: unknown
  transaction?: unknown
  readonly queryRunner?: Runner
}

/**
 * Holdfast on TypeORM with its types `mysql` and `mariadb`, both on `mysql2`. A caller's transaction is the
 * `EntityManager` of `dataSource.transaction()`, or of a query runner that has started one.
 *
 * @example
 * const hf = createHoldfast(fromTypeOrmMysql(dataSource))
 * await dataSource.transaction(async (manager) => { await hf.locks.acquire(manager, key) })
 */
export function fromTypeOrmMysql<Source extends TypeOrmMysqlDataSource>(
  dataSource: Source,
  options?: Record<never, never>,
): InnodbDriver<TypeOrmTransactionOf<Source>> {
  const by = 'fromTypeOrmMysql'
  const is = 'a TypeORM DataSource of type mysql or mariadb'
  assertClient(dataSource, { kind: 'typeormMysql', by, is, engine: 'innodb' }, false)
  assertNoOptions(options, by)
  type Tx = TypeOrmTransactionOf<Source> & object
  return mysql2OrmDriver<Tx>({
    name: 'typeorm',
    pool: () => poolOf(dataSource, by),
    assertRoot() {},
    async open(connection, callback) {
      const runner = dataSource.createQueryRunner() as Runner
      runner.databaseConnection = connection
      try {
        await runner.startTransaction()
        await callback(runner.manager as Tx)
        await runner.commitTransaction()
      } catch (error) {
        // For its own state and its subscribers: nothing of it is sent.
        await runner.rollbackTransaction().catch(() => undefined)
        throw error
      } finally {
        await runner.release()
      }
    },
    settle(tx) {
      if (managerOf(tx).queryRunner?.transactionDepth === 1) return
      const subject = 'a transaction of the query runner was left open, and nothing is saved'
      throw holdfastError('TX_NESTED', { details: { subject } })
    },
    beneath(tx) {
      const { queryRunner: runner } = managerOf(tx)
      const connection = runner?.databaseConnection
      // Without one every statement takes a connection of its own from the pool.
      if (runner === undefined || connection === undefined || runner.isReleased) return undefined
      return { ...mysql2Connection(connection.promise()), native: runner, whole: runner }
    },
  })
}

function poolOf(dataSource: object, by: string): Mysql2CorePool {
  const { driver } = dataSource as { readonly driver?: { readonly pool?: Mysql2CorePool } }
  const pool = driver?.pool
  if (typeof pool?.getConnection === 'function' && typeof pool.promise === 'function') return pool
  const subject = `${by} needs a DataSource that is initialized, on one server, with mysql2`
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}

function managerOf(tx: unknown): Manager {
  const handle = tx as Manager | null | undefined
  if (typeof handle?.query === 'function' && typeof handle.transaction === 'function') return handle
  const subject = 'TypeORM EntityManager expected'
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
