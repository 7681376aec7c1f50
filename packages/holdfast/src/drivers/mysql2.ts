import { assertClient } from '../core/client-kind.ts'
import { holdfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import type { InnodbDriver, InnodbTransaction } from '../engines/innodb/driver.ts'
import { innodb } from '../engines/innodb/engine.ts'
import {
  aloneOn,
  type InnodbConnection,
  runOnConnection,
  type TakenConnection,
} from './innodb/innodb-connection.ts'
import { leashedConnection, transactionOn } from './innodb/innodb-handle.ts'
import { type Mysql2Connection, mysql2Connection } from './innodb/mysql2-connection.ts'
import { coreOf } from './innodb/mysql2-orm-leash.ts'
import { assertNoOptions } from './parts/no-options.ts'

export type { Mysql2Connection } from './innodb/mysql2-connection.ts'

/** The part of a pool of `mysql2/promise` that we use. */
export interface Mysql2Pool {
  getConnection(): Promise<Mysql2Connection>
}

/** The connection type of a pool. */
export type Mysql2ConnectionOf<Pool extends Mysql2Pool> = Awaited<ReturnType<Pool['getConnection']>>

/**
 * Holdfast on `mysql2/promise`, for MariaDB and MySQL. Transactions are opened on connections of the pool; a caller's
 * transaction is the connection on which the caller called `beginTransaction()`.
 *
 * @example const hf = createHoldfast(fromMysql2(createPool({ uri })))
 */
export function fromMysql2<Pool extends Mysql2Pool>(
  pool: Pool,
  options?: Record<never, never>,
): InnodbDriver<Mysql2ConnectionOf<Pool>> {
  type Tx = Mysql2ConnectionOf<Pool>
  assertPool(pool)
  assertNoOptions(options, 'fromMysql2')
  const take = async (): Promise<TakenConnection<Tx>> => {
    const native = (await asOurs(() => pool.getConnection())) as Tx
    const within: TakenConnection<Tx>['within'] = (leash, use) => {
      let core: object | undefined
      const connection = (): object | undefined => (core ??= coreOf(native, leash))
      return use(leashedConnection(native, leash, { connection }))
    }
    return { ...mysql2Connection(native), within }
  }
  const alone = aloneOn(take)
  const join = (connection: InnodbConnection, native: Tx): InnodbTransaction<Tx> =>
    transactionOn(connection, native, driver, alone)
  const driver: InnodbDriver<Tx> = {
    name: 'mysql2',
    engine: innodb,
    capabilities: {},
    alone,
    join: (tx) => join(mysql2Connection(assertConnection(tx)), tx),
    transaction: (body, settings) => runOnConnection({ driver, take, join }, body, settings),
  }
  return driver
}

function assertPool(pool: unknown): void {
  const { getConnection, promise, totalConnections } = (pool ?? {}) as Partial<Mysql2Pool> & {
    promise?: unknown
    totalConnections?: unknown
  }
  // What a pool of `mariadb` has, and those of mysql2 have not.
  const isOther = typeof totalConnections === 'function'
  const fits = typeof getConnection === 'function' && typeof promise !== 'function' && !isOther
  const is = 'a pool of mysql2/promise'
  assertClient(pool, { kind: 'mysql2Pool', by: 'fromMysql2', is, engine: 'innodb' }, fits)
}

/** A pool has `query` too, and its statements run on any connection: refuse it by shape. */
function assertConnection(tx: unknown): Mysql2Connection {
  const handle = tx as Partial<Mysql2Connection> | null | undefined
  const isConnection =
    typeof handle?.query === 'function' &&
    typeof handle.execute === 'function' &&
    typeof handle.threadId === 'number' &&
    // Those with callbacks have the rest as well, and answer nothing to who awaits them.
    typeof (handle as { promise?: unknown }).promise !== 'function'
  if (isConnection) return handle as Mysql2Connection
  const subject =
    'a connection of mysql2/promise expected, on which a transaction was begun; no pool; of one with callbacks pass connection.promise()'
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
