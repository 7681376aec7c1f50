import { assertClient } from '../core/client-kind.ts'
import type { Row } from '../core/driver.ts'
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
import { assertNoOptions } from './parts/no-options.ts'

/** The part of a connection of `mariadb` that we use. */
export interface MariadbConnection {
  readonly threadId: number | null
  readonly info: { readonly status: number } | null
  query(options: never, values?: never): Promise<unknown>
  execute(options: never, values?: never): Promise<unknown>
  prepare(text: string): Promise<{ execute(): Promise<unknown> }>
  release(): Promise<void>
  destroy(): void
}

/** The part of a pool of `mariadb` that we use. */
export interface MariadbPool {
  getConnection(): Promise<MariadbConnection>
}

/** The connection type of a pool. */
export type MariadbConnectionOf<Pool extends MariadbPool> = Awaited<
  ReturnType<Pool['getConnection']>
>

/**
 * Holdfast on `mariadb`, for MariaDB and MySQL. Transactions are opened on connections of the pool; a caller's
 * transaction is the connection on which the caller called `beginTransaction()`.
 *
 * @example const hf = createHoldfast(fromMariadb(createPool(uri)))
 */
export function fromMariadb<Pool extends MariadbPool>(
  pool: Pool,
  options?: Record<never, never>,
): InnodbDriver<MariadbConnectionOf<Pool>> {
  type Tx = MariadbConnectionOf<Pool>
  assertPool(pool)
  assertNoOptions(options, 'fromMariadb')
  const take = async (): Promise<TakenConnection<Tx>> => {
    const native = (await asOurs(() => pool.getConnection())) as Tx
    const within: TakenConnection<Tx>['within'] = (leash, use) =>
      use(leashedConnection(native, leash))
    return { ...connectionOf(native), within }
  }
  const alone = aloneOn(take)
  const join = (connection: InnodbConnection, native: Tx): InnodbTransaction<Tx> =>
    transactionOn(connection, native, driver, alone)
  const driver: InnodbDriver<Tx> = {
    name: 'mariadb',
    engine: innodb,
    capabilities: {},
    alone,
    join: (tx) => join(connectionOf(assertConnection(tx)), tx),
    transaction: (body, settings) => runOnConnection({ driver, take, join }, body, settings),
  }
  return driver
}

function connectionOf(native: MariadbConnection): InnodbConnection {
  const isOpen = (): boolean => ((native.info?.status ?? 0) & 1) === 1
  return {
    native,
    // The pool wraps the connection anew each time, and keeps what it knows of it.
    sole: native.info ?? native,
    id: native.threadId ?? 0,
    async send(sql, values = []) {
      const options = { sql, ...ours }
      const answer =
        values.length === 0
          ? await native.query(options as never)
          : await native.execute(options as never, values as never)
      if (Array.isArray(answer)) return answer as Row[]
      const { affectedRows = 0 } = answer as { readonly affectedRows?: number }
      return [{ '#affected': affectedRows, '#open': isOpen(), '#status': native.info?.status }]
    },
    async prepare(sql) {
      const statement = await native.prepare(sql)
      return () => statement.execute()
    },
    release: () => native.release(),
    destroy: () => native.destroy(),
  }
}

/** However the pool is set up, our rows are objects, and their values what `mariadb` makes of them itself. */
const ours = {
  rowsAsArray: false,
  nestTables: false,
  namedPlaceholders: false,
  metaAsArray: false,
  typeCast: undefined,
}

function assertPool(pool: unknown): void {
  const { getConnection, totalConnections } = (pool ?? {}) as Partial<MariadbPool> & {
    totalConnections?: unknown
  }
  const fits = typeof getConnection === 'function' && typeof totalConnections === 'function'
  const is = 'a pool of mariadb, as its createPool makes one'
  assertClient(pool, { kind: 'mariadbPool', by: 'fromMariadb', is, engine: 'innodb' }, fits)
}

/** A pool has `query` too, and its statements run on any connection: refuse it by shape. */
function assertConnection(tx: unknown): MariadbConnection {
  const handle = tx as (Partial<MariadbConnection> & { commit?: unknown }) | null | undefined
  const isConnection =
    typeof handle?.query === 'function' &&
    typeof handle.execute === 'function' &&
    typeof handle.commit === 'function'
  if (isConnection) return handle as MariadbConnection
  const subject = 'a connection of mariadb expected'
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
