import type { Driver, Isolation, Row, Transaction, TransactionState } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
import { type Held, runInCallback } from './parts/callback-transaction.ts'
import type { Leash } from './parts/leash.ts'
import { ConnectionWatch, type PgConnection, pgEndings } from './pg/pg-connection.ts'
import { pgCancel } from './pg/pg-cancel.ts'
import { pgTransactionState } from './pg/pg-state.ts'
import { cameToRest, isBusy, leashedClient } from './pg/pg-leash.ts'
import { aloneOnTaken, noteTaken, watchRoot } from './parts/root-client.ts'
import { hearPool, unlessHeard } from './parts/sync-wait.ts'
import { poolOf } from './parts/pool-size.ts'
import { assertClient as assertKind } from '../core/client-kind.ts'
import { postgres } from '../engines/postgres/engine.ts'
import { assertNoOptions } from './parts/no-options.ts'
import type { TypeOrmTransactionOf } from './orm/typeorm-handle.ts'

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

export type { TypeOrmTransactionOf } from './orm/typeorm-handle.ts'

/** The part of an `EntityManager` we use; only one that is bound to a connection has a runner. */
interface TypeOrmManager {
  query(text: string, values?: unknown[]): Promise<unknown>
  readonly queryRunner?: TypeOrmRunner
}

type GiveBack = (error?: unknown) => unknown

interface TypeOrmRunner {
  readonly isTransactionActive: boolean
  readonly isReleased: boolean
  /** 1 in a transaction, more in savepoints; protected in the types. */
  transactionDepth?: number | undefined
  release(): Promise<void>
  /** Protected in the types; the `pg` client once the runner has connected. */
  databaseConnection?: PgConnection
  releasePostgresConnection?: GiveBack
  releaseCallback?: GiveBack
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
): Driver<TypeOrmTransactionOf<Source>>
export function fromTypeOrm<Source extends TypeOrmDataSource>(
  dataSource: Source,
  given?: object,
): Driver<TypeOrmTransactionOf<Source>> {
  const { query, transaction } = (dataSource ?? {}) as Partial<Source>
  const wanted = { kind: 'typeorm', by: 'fromTypeOrm', is: 'a TypeORM DataSource' } as const
  assertKind(dataSource, wanted, typeof query === 'function' && typeof transaction === 'function')
  assertNoOptions(given, 'fromTypeOrm')
  type Tx = TypeOrmTransactionOf<Source>
  const join = (tx: Tx): Transaction<Tx> => {
    const manager = assertManager(tx)
    const transaction: Transaction<Tx> = {
      native: tx,
      budgetMs: undefined,
      state: () => typeOrmState(manager),
      cancel: pgCancel(manager.queryRunner?.databaseConnection),
      endings: () => pgEndings(manager.queryRunner?.databaseConnection ?? {}),
      query: async ({ text, values }) => (await manager.query(text, [...values])) as Row[],
      command: async (text) => {
        await manager.query(text)
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  // Made when the data source connects, which may be after us.
  const pool = (): object | undefined =>
    watchRoot((dataSource as { readonly driver?: { readonly master?: unknown } }).driver?.master)
  return {
    name: 'typeorm',
    engine: postgres,
    capabilities: {
      get pool() {
        return poolOf(pool())
      },
    },
    root: pool,
    alone: {
      async query({ text, values }) {
        hearPool(pool())
        return await unlessHeard(
          async () =>
            (await asOurs(() => aloneOnTaken(() => dataSource.query(text, [...values])))) as Row[],
        )
      },
    },
    join,
    async transaction(body, { isolation, marked = false }) {
      if (typeOrmState(dataSource) !== 'none') throw holdfastError('TX_NESTED')
      // From here on its root client is watched.
      pool()
      return runInCallback({
        open: async (callback) => {
          const run = callback as (manager: unknown) => Promise<void>
          return asOurs(() =>
            noteTaken({ client: undefined }, () =>
              isolation === undefined
                ? dataSource.transaction(run)
                : dataSource.transaction(spell(isolation), run),
            ),
          )
        },
        join,
        body,
        masksCommit: false,
        marked,
        watch: (native) => {
          const client = (native as TypeOrmManager).queryRunner?.databaseConnection
          return client === undefined ? undefined : new ConnectionWatch(client)
        },
        hold,
        // Subscribers may send statements around COMMIT.
        strict: !hasSubscribers(dataSource),
      })
    },
  }
}

/**
 * Whoever runs statements of this transaction asks its query runner for the client. The one on the leash stays
 * there, so that nobody gets at the connection afterwards.
 */
function hold<Tx>(native: Tx, leash: Leash): Held<Tx> {
  const { queryRunner: runner } = native as TypeOrmManager
  const client = runner?.databaseConnection
  if (runner === undefined || client === undefined) return { native }
  const { transactionDepth: depth } = runner
  const release = runner.release.bind(runner)
  runner.databaseConnection = leashedClient(client, leash)
  runner.release = async () => {
    leash.assertMayRelease()
    await release()
  }
  // What that calls. With an error TypeORM calls it itself: the connection is lost.
  for (const name of ['releasePostgresConnection', 'releaseCallback'] as const) {
    const { [name]: giveBack } = runner
    if (giveBack === undefined) continue
    runner[name] = (error) => {
      if (error === undefined && leash.isHeld) leash.assertMayRelease()
      return giveBack.call(runner, error)
    }
  }
  return {
    native,
    sole: client,
    busy: () => isBusy(client),
    rest: () => cameToRest(client),
    settle() {
      const isNested = runner.transactionDepth !== depth
      // In a savepoint TypeORM would only end that, and give the connection back inside of our transaction. One that
      // nobody awaited may be set as late as after this.
      Object.defineProperty(runner, 'transactionDepth', {
        get: () => depth,
        set: () => {},
        configurable: true,
      })
      // Where it has failed it is told as that: TypeORM counts on if it could not end a savepoint.
      if (!isNested || pgTransactionState(client) === 'failed') return
      throw holdfastError('TX_NESTED', {
        details: {
          subject: 'a transaction of the query runner was left open, and nothing is saved',
        },
      })
    },
  }
}

function hasSubscribers(dataSource: unknown): boolean {
  const { subscribers } = dataSource as { readonly subscribers?: { readonly length: number } }
  return (subscribers?.length ?? 0) > 0
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
