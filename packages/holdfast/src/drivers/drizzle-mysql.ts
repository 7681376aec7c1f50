import { assertClient } from '../core/client-kind.ts'
import { holdfastError } from '../core/errors.ts'
import type { InnodbDriver } from '../engines/innodb/driver.ts'
import type { DrizzleTransactionOf } from './orm/drizzle-handle.ts'
import { assertNoOptions } from './parts/no-options.ts'
import { type Mysql2Connection, mysql2Connection } from './innodb/mysql2-connection.ts'
import { type Mysql2CorePool, mysql2OrmDriver } from './innodb/mysql2-orm.ts'

export type { DrizzleTransactionOf } from './orm/drizzle-handle.ts'

/** The part of a Drizzle database on `mysql2` that we use. */
export interface DrizzleMysqlDatabase {
  execute(query: never): PromiseLike<unknown>
  transaction(body: (tx: unknown) => Promise<unknown>): Promise<unknown>
}

/** What a database or a transaction is made of; not public, so nothing here is taken for granted. */
interface Inside {
  readonly session?: Session
}

interface Session {
  readonly client?: unknown
  transaction?(body: (tx: unknown) => Promise<void>): Promise<unknown>
}

/**
 * Holdfast on Drizzle over `mysql2`, for MariaDB and MySQL. A caller's transaction is what `db.transaction()` hands to
 * its callback, nested ones included.
 *
 * @example
 * import { drizzle } from 'drizzle-orm/mysql2'
 * const hf = createHoldfast(fromDrizzleMysql(drizzle(pool)))
 */
export function fromDrizzleMysql<Db extends DrizzleMysqlDatabase>(
  db: Db,
  options?: Record<never, never>,
): InnodbDriver<DrizzleTransactionOf<Db>> {
  const by = 'fromDrizzleMysql'
  const is = 'a Drizzle database on mysql2'
  assertClient(db, { kind: 'drizzleMysql', by, is, engine: 'innodb' }, false)
  assertNoOptions(options, by)
  type Tx = DrizzleTransactionOf<Db> & object
  const { session } = db as Inside
  const pool = corePoolOf(clientOf(db))
  if (pool === undefined && !isConnection(clientOf(db)))
    throw unfit(`${by} needs a pool of mysql2 beneath`)
  return mysql2OrmDriver<Tx>({
    name: 'drizzle-orm',
    pool() {
      if (pool === undefined) throw withoutPool(db, by)
      return pool
    },
    assertRoot() {
      if (pool === undefined) throw withoutPool(db, by)
    },
    async open(connection, callback) {
      if (session?.transaction === undefined)
        throw unfit(`${by}: this version of Drizzle is not known`)
      // Drizzle makes its handle over the client that its session has, and begins there if that is no pool.
      const lent = Object.create(session, { client: { value: connection.promise() } }) as Session
      await session.transaction.call(lent, async (tx) => await callback(tx as Tx))
    },
    beneath(tx) {
      const client = clientOf(tx)
      if (isConnection(client)) return { ...mysql2Connection(client), whole: client }
      if (corePoolOf(client) !== undefined) return undefined
      throw unfit('Drizzle transaction on mysql2 expected')
    },
  })
}

function clientOf(handle: unknown): unknown {
  return (handle as Inside | null | undefined)?.session?.client
}

/** A pool of `mysql2/promise` has the one with callbacks in it. */
function corePoolOf(client: unknown): Mysql2CorePool | undefined {
  const { getConnection, pool } = (client ?? {}) as {
    readonly getConnection?: unknown
    readonly pool?: Partial<Mysql2CorePool>
  }
  const fits = typeof getConnection === 'function' && typeof pool?.getConnection === 'function'
  return fits ? (pool as Mysql2CorePool) : undefined
}

/** What `db.transaction()` has handed out can roll back; a database on a connection cannot. */
function withoutPool(db: object, by: string): Error {
  return typeof (db as { rollback?: unknown }).rollback === 'function'
    ? holdfastError('TX_NESTED')
    : unfit(`${by} was given a database on a single connection: make it on a pool of mysql2`)
}

function isConnection(client: unknown): client is Mysql2Connection {
  const { threadId, execute } = (client ?? {}) as Partial<Mysql2Connection>
  return typeof threadId === 'number' && typeof execute === 'function'
}

function unfit(subject: string): Error {
  return holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
