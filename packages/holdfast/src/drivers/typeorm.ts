import type { Driver, Isolation, Row, Transaction, TransactionState } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { withSavepoint } from '../engines/postgres/savepoint.ts'
import { runInCallback } from './callback-transaction.ts'
import { type PgConnection, pgTransactionState, watchConnection } from './pg-connection.ts'
import { hearPool, unlessHeard } from './sync-wait.ts'

/** TypeORM's spelling of the isolation levels. */
type TypeOrmIsolation = 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE'

/** The part of a TypeORM `DataSource` we use. */
export interface TypeOrmDataSource {
  query(text: string, values?: unknown[]): Promise<unknown>
  transaction(body: (manager: unknown) => Promise<unknown>): Promise<unknown>
  transaction(
    isolation: TypeOrmIsolation,
    body: (manager: unknown) => Promise<unknown>,
  ): Promise<unknown>
}

/** The `EntityManager` a data source hands to its transactions. */
export type TypeOrmTransactionOf<Source> = Source extends {
  transaction(isolation: never, body: (manager: infer Manager) => Promise<unknown>): unknown
}
  ? Manager
  : never

/** The part of an `EntityManager` we use; only one that is bound to a connection has a runner. */
interface TypeOrmManager {
  query(text: string, values?: unknown[]): Promise<unknown>
  readonly queryRunner?: TypeOrmRunner
}

interface TypeOrmRunner {
  readonly isTransactionActive: boolean
  readonly isReleased: boolean
  /** Protected in the types; the `pg` client once the runner has connected. */
  readonly databaseConnection?: PgConnection
}

/**
 * Holdfast on TypeORM with its PostgreSQL driver. A caller's transaction is the `EntityManager` of
 * `dataSource.transaction()`, or of a query runner that has started one.
 *
 * @example
 * const hf = createHoldfast(fromTypeOrm(dataSource))
 * await dataSource.transaction(async (manager) => { await hf.locks.acquire(manager, key) })
 */
export function fromTypeOrm<Source extends TypeOrmDataSource>(
  dataSource: Source,
): Driver<TypeOrmTransactionOf<Source>> {
  type Tx = TypeOrmTransactionOf<Source>
  const join = (tx: Tx): Transaction<Tx> => {
    const manager = assertManager(tx)
    const transaction: Transaction<Tx> = {
      native: tx,
      budgetMs: undefined,
      state: () => typeOrmState(manager),
      query: async ({ text, values }) => (await manager.query(text, [...values])) as Row[],
      command: async (text) => {
        await manager.query(text)
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  return {
    name: 'typeorm',
    engine: 'postgres',
    capabilities: { pipelines: false },
    alone: {
      async query({ text, values }) {
        // Made when the data source connects, which may be after us.
        hearPool((dataSource as { readonly driver?: { readonly master?: unknown } }).driver?.master)
        return await unlessHeard(async () => (await dataSource.query(text, [...values])) as Row[])
      },
    },
    join,
    async transaction(body, { isolation }) {
      if (typeOrmState(dataSource) !== 'none') throw holdfastError('TX_NESTED')
      return runInCallback({
        open: async (callback) => {
          const run = callback as (manager: unknown) => Promise<void>
          return isolation === undefined
            ? dataSource.transaction(run)
            : dataSource.transaction(spell(isolation), run)
        },
        join,
        body,
        masksCommit: false,
        watch: (native) => {
          const client = (native as TypeOrmManager).queryRunner?.databaseConnection
          return client === undefined ? undefined : watchConnection(client)
        },
      })
    },
  }
}

function spell(isolation: Isolation): TypeOrmIsolation {
  return isolation.toUpperCase() as TypeOrmIsolation
}

/** Without a query runner every statement takes a connection of its own from the pool. */
function typeOrmState(manager: TypeOrmManager): TransactionState {
  const runner = manager.queryRunner
  if (runner === undefined || runner.isReleased) return 'none'
  if (runner.databaseConnection === undefined)
    return runner.isTransactionActive ? 'unknown' : 'none'
  return pgTransactionState(runner.databaseConnection)
}

function assertManager(tx: unknown): TypeOrmManager {
  const handle = tx as (Partial<TypeOrmManager> & { transaction?: unknown }) | null | undefined
  if (typeof handle?.query !== 'function' || typeof handle.transaction !== 'function') {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'TypeORM EntityManager expected' },
    })
  }
  return handle as TypeOrmManager
}
