import type { Driver, Isolation, Row, Transaction, TransactionState } from '../core/driver.ts'
import { assertClient as assertKind } from '../core/client-kind.ts'
import { rolledBack } from '../core/errors/commit-failure.ts'
import { holdfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import { postgres } from '../engines/postgres/engine.ts'
import { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
import { type Held, runInCallback } from './parts/callback-transaction.ts'
import {
  type KyselyHandle,
  kyselyRunner,
  kyselyState,
  nameAborted,
  nameEnded,
} from './orm/kysely-handle.ts'
import { holdKysely } from './orm/kysely-leash.ts'
import type { Leash } from './parts/leash.ts'
import { pgCancel } from './pg/pg-cancel.ts'
import { ConnectionWatch, type PgConnection } from './pg/pg-connection.ts'
import { poolOf } from './parts/pool-size.ts'
import { aloneOnTaken, noteTaken, type Taking, watchRoot } from './parts/root-client.ts'
import { hearPool, unlessHeard } from './parts/sync-wait.ts'
import { assertNoOptions } from './parts/no-options.ts'

/** The part of MikroORM's `SqlEntityManager` we use. */
export interface MikroOrmManager {
  isInTransaction(): boolean
  getTransactionContext(): unknown
  flush(): Promise<unknown>
}

interface MikroOrmConnection {
  begin(options?: { readonly ctx?: unknown }): Promise<unknown>
  ensureConnection(): Promise<unknown>
  getClient(): KyselyHandle
  /** The `pg` pool; absent in older versions. */
  getNativeClient?(): Promise<unknown>
}

type Nested = (em: MikroOrmInside) => unknown

/** What an entity manager is inside of its types, which say the same in more words. */
interface MikroOrmInside extends MikroOrmManager {
  fork(): MikroOrmInside
  getContext(validate: false): object
  getConnection(type: 'write'): MikroOrmConnection
  getEventManager(): { getSubscribers?(): { readonly size: number } }
  transactional(
    body: Nested,
    options?: { readonly isolationLevel?: Isolation | undefined },
  ): Promise<unknown>
  getPlatform(): { getDefaultClientUrl?(): string; getDefaultSchemaName?(): string | undefined }
  readonly schema?: string | undefined
  readonly config?: { getSchema?(): string | undefined }
}

/**
 * Holdfast on MikroORM 7 with its PostgreSQL driver. A caller's transaction is the entity manager that
 * `em.transactional()` hands to its callback, or one on which `em.begin()` was called. Inside of it `orm.em` stands for
 * the same transaction, as MikroORM has it.
 *
 * In a transaction of ours the entity manager is a new fork: nothing that was loaded before the lock is in it. What the
 * body has changed is flushed before COMMIT.
 *
 * @example
 * const hf = createHoldfast(fromMikroOrm(orm.em))
 * await orm.em.transactional(async (em) => { await hf.locks.acquire(em, key) })
 *
 * @throws DRIVER_HANDLE_INVALID if it is no entity manager of MikroORM for PostgreSQL
 */
export function fromMikroOrm<Em extends MikroOrmManager>(em: Em): Driver<Em>
export function fromMikroOrm<Em extends MikroOrmManager>(em: Em, given?: object): Driver<Em> {
  const root = assertPostgres(em)
  assertNoOptions(given, 'fromMikroOrm')
  const pools = new Pools()
  const join = (tx: Em): Transaction<Em> => {
    const manager = assertManager(tx)
    const run = async (text: string, values: readonly unknown[]): Promise<Row[]> => {
      const context = contextOf(manager)
      if (context === undefined) throw holdfastError('TX_HANDLE_ENDED')
      return await kyselyRunner(context)(text, values).catch(nameEnded)
    }
    const transaction: Transaction<Em> = {
      native: tx,
      budgetMs: undefined,
      state: () => mikroOrmState(manager),
      query: async ({ text, values }) => run(text, values),
      command: async (text) => {
        await run(text, [])
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  return {
    name: '@mikro-orm/postgresql',
    engine: postgres,
    capabilities: {
      get pool() {
        return poolOf(pools.known)
      },
    },
    root: () => pools.known,
    alone: {
      async query({ text, values }) {
        const connection = root.getConnection('write')
        await pools.find(connection)
        const plain = kyselyRunner(connection.getClient())
        return await unlessHeard(() => asOurs(() => aloneOnTaken(() => plain(text, values))))
      },
    },
    join,
    schemaOf: (tx, named) => schemaOf(assertManager(tx), named),
    async transaction(body, { isolation, marked = false }) {
      if (root.getContext(false) === root && root.isInTransaction())
        throw holdfastError('TX_NESTED')
      const taking = new Taken()
      const running = runInCallback({
        open: async (callback: (native: Em) => Promise<void>) => {
          await pools.find(root.getConnection('write'))
          const opened = async (forked: MikroOrmInside): Promise<void> => {
            assertTransactional(forked)
            await callback(forked as unknown as Em)
          }
          // Without options MikroORM would take our undefined for one of its own.
          const options = isolation === undefined ? {} : { isolationLevel: isolation }
          const fork = root.fork()
          return await asOurs(() =>
            noteTaken(taking, () => fork.transactional(opened as Nested, options)),
          ).catch(nameAborted)
        },
        join: (tx: Em) => ({ ...join(tx), cancel: pgCancel(taking.client) }),
        async body(transaction: Transaction<Em>) {
          const result = await body(transaction)
          // MikroORM would do so after the body, where its statements are not part of it any more.
          await transaction.native.flush().catch((error: unknown) => {
            throw rolledBack(error)
          })
          return result
        },
        masksCommit: false,
        marked,
        // Subscribers may send statements between our last look and COMMIT.
        watch: () =>
          taking.client === undefined
            ? undefined
            : new ConnectionWatch(taking.client as PgConnection),
        hold,
        // They may send statements around COMMIT.
        strict: (root.getEventManager().getSubscribers?.().size ?? 0) === 0,
      })
      return await running.finally(() => taking.giveBack())
    },
  }
}

/** As MikroORM looks for it. The schema that it takes for the usual one it does not write, whatever the search path is. */
function schemaOf(em: MikroOrmInside, named: string | undefined): string | undefined {
  const said = [named, em.schema].find((schema) => schema !== undefined && schema !== chosenLater)
  const schema = said ?? em.config?.getSchema?.()
  return schema === em.getPlatform().getDefaultSchemaName?.() ? undefined : schema
}

/** Of an entity: its manager says the schema. Of a manager: the configuration does. */
const chosenLater = '*'

interface PoolClient {
  release(destroy?: boolean): void
}

/** The connection of a transaction. One that was lost MikroORM does not give back, since its ROLLBACK fails. */
class Taken implements Taking {
  refusal: unknown
  #client: PoolClient | undefined
  #isBack = false

  get client(): unknown {
    return this.#client
  }

  set client(given: unknown) {
    const client = given as PoolClient
    const { release } = client
    this.#client = client
    // Until the pool hands it out again, with another one.
    client.release = (destroy) => {
      this.#isBack = true
      release.call(client, destroy)
    }
  }

  giveBack(): void {
    if (!this.#isBack) this.#client?.release(true)
  }
}

/** The pool of `pg` beneath, once MikroORM has made it. */
class Pools {
  known: object | undefined

  async find(connection: MikroOrmConnection): Promise<void> {
    if (this.known !== undefined) return
    await connection.ensureConnection()
    // Where a Kysely instance was given to MikroORM, its pool stays hidden.
    const pool = await connection.getNativeClient?.().catch(() => undefined)
    hearPool(pool)
    this.known = watchRoot(pool)
  }
}

async function hold<Tx>(native: Tx, leash: Leash): Promise<Held<Tx>> {
  const manager = native as unknown as MikroOrmInside
  const context = contextOf(manager)
  const held = await holdKysely(context, leash)
  refuseSecond(manager, leash)
  countNested(manager, leash)
  return {
    ...held,
    native,
    async rest() {
      const rested = (await held.rest?.()) ?? true
      // Before ROLLBACK MikroORM waits its turn on the connection, which rows that were not all read keep for ever.
      if (!rested) Object.assign(context ?? {}, { getExecutor: () => idle })
      return rested
    },
  }
}

/**
 * `begin()` of this entity manager, or of `orm.em` which stands for it, would take another connection and put that in
 * the place of ours.
 */
function refuseSecond(manager: MikroOrmInside, leash: Leash): void {
  const { getConnection } = manager
  manager.getConnection = (...type) => {
    const connection = getConnection.apply(manager, type)
    return new Proxy(connection, {
      get(target, property) {
        const value: unknown = Reflect.get(target, property)
        if (typeof value !== 'function') return value
        return (...args: unknown[]): unknown => {
          const inside = (args[0] as { readonly ctx?: unknown } | undefined)?.ctx !== undefined
          if (property === 'begin' && !inside) leash.assertMayBegin()
          return Reflect.apply(value, target, args)
        }
      },
    })
  }
}

const idle = { provideConnection: async (use: () => Promise<unknown>) => await use() }

/** A transaction inside of ours is under way until it is over, also while it sends nothing. */
function countNested(manager: MikroOrmInside, leash: Leash): void {
  const { transactional } = manager
  manager.transactional = async (body, options) =>
    await leash.during(() =>
      transactional.call(
        manager,
        (inner) => {
          endNested(contextOf(inner), leash)
          countNested(inner, leash)
          return body(inner)
        },
        options,
      ),
    )
}

const usesConnection = [
  'executeQuery',
  'getExecutor',
  'savepoint',
  'rollbackToSavepoint',
  'releaseSavepoint',
] as const

/**
 * Kysely's handle of a savepoint does not know when its transaction is over. MikroORM would roll back to the savepoint
 * of that name in the transaction of whoever has the connection by then.
 */
function endNested(context: object | undefined, leash: Leash): void {
  const handle = (context ?? {}) as Record<string, (...args: unknown[]) => unknown>
  for (const name of usesConnection) {
    const { [name]: call } = handle
    if (call === undefined) continue
    handle[name] = (...args) => {
      if (!leash.isHeld) throw holdfastError('TX_HANDLE_ENDED')
      return call.apply(handle, args)
    }
  }
}

function contextOf(manager: MikroOrmManager): KyselyHandle | undefined {
  return manager.getTransactionContext() as KyselyHandle | undefined
}

/** MikroORM keeps the context of a transaction that is over where its entity manager was made for it. */
function mikroOrmState(manager: MikroOrmManager): TransactionState {
  const context = contextOf(manager)
  return context === undefined ? 'none' : kyselyState(context)
}

function assertTransactional(manager: MikroOrmManager): void {
  if (!manager.isInTransaction()) {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'MikroORM without disableTransactions expected' },
    })
  }
}

function assertManager(tx: unknown): MikroOrmInside {
  const { getTransactionContext, transactional } = (tx ?? {}) as Partial<MikroOrmInside>
  if (typeof getTransactionContext !== 'function' || typeof transactional !== 'function') {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'MikroORM entity manager expected' },
    })
  }
  return tx as MikroOrmInside
}

function assertPostgres(em: unknown): MikroOrmInside {
  const is = 'an entity manager of @mikro-orm/postgresql'
  assertKind(em, { kind: 'mikroOrmManager', by: 'fromMikroOrm', is }, false)
  const manager = assertManager(em)
  const connection = manager.getConnection('write') as Partial<MikroOrmConnection> | undefined
  const isPostgres =
    manager.getPlatform().getDefaultClientUrl?.().startsWith('postgresql:') === true
  if (!isPostgres || typeof connection?.getClient !== 'function') {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'an entity manager of @mikro-orm/postgresql 7 expected' },
    })
  }
  return manager
}
