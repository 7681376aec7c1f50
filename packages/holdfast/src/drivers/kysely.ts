import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
import { runInCallback } from './parts/callback-transaction.ts'
import {
  assertKysely,
  assertKyselyHandle as assertHandle,
  type KyselyDatabase,
  kyselyRunner,
  kyselyState,
  type KyselyTransactionOf,
  nameAborted,
  nameEnded,
} from './orm/kysely-handle.ts'
import { holdKysely } from './orm/kysely-leash.ts'
import { pgCancel } from './pg/pg-cancel.ts'
import { aloneOnTaken, noteTaken, type Taking, watchRoot } from './parts/root-client.ts'
import { hearPool, unlessHeard } from './parts/sync-wait.ts'
import { objectGiven } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { postgres } from '../engines/postgres/engine.ts'

export type { KyselyDatabase, KyselyTransactionOf } from './orm/kysely-handle.ts'

/** Settings of `fromKysely`. */
export interface KyselyOptions {
  /**
   * The `pg` pool of the dialect, which Kysely hides. Only listened to: with synchronous replication
   * Holdfast has to hear if the wait for the standby is cancelled, a body that uses it is reported, and a
   * statement that is to end can be cancelled without a connection of the pool.
   */
  readonly pool?: object
}

const kyselyOptions: KnownOptions<KyselyOptions> = {
  pool: 'object',
}

/**
 * Holdfast on Kysely with its PostgreSQL dialect. A caller's transaction is what
 * `db.transaction().execute()` hands to its callback, or a controlled transaction.
 *
 * @example
 * const hf = createHoldfast(fromKysely(db))
 * await db.transaction().execute(async (trx) => { await hf.locks.acquire(trx, key) })
 */
export function fromKysely<Db extends KyselyDatabase>(
  db: Db,
  given: KyselyOptions = {},
): Driver<KyselyTransactionOf<Db>> {
  assertKysely(db, { kind: 'kysely', by: 'fromKysely', is: 'a Kysely instance' })
  const { pool } = optionsGiven(given, kyselyOptions)
  if (pool !== undefined) objectGiven(pool, 'pool')
  type Tx = KyselyTransactionOf<Db>
  hearPool(pool)
  const root = watchRoot(pool)
  const join = (tx: Tx): Transaction<Tx> => {
    const handle = assertHandle(tx)
    const plain = kyselyRunner(handle)
    const run: typeof plain = (text, values) => plain(text, values).catch(nameEnded)
    const transaction: Transaction<Tx> = {
      native: tx,
      budgetMs: undefined,
      state: () => kyselyState(handle),
      query: async ({ text, values }) => run(text, values),
      command: async (text) => {
        await run(text, [])
      },
      nested: async (body) => withSavepoint(transaction, body),
    }
    return transaction
  }
  const alone = kyselyRunner(db)
  return {
    name: 'kysely',
    engine: postgres,
    capabilities: {},
    root: () => root,
    alone: {
      query: async ({ text, values }) =>
        unlessHeard(() => asOurs(() => aloneOnTaken(() => alone(text, values)))),
    },
    join,
    async transaction(body, { isolation, marked = false }) {
      if (db.isTransaction) throw holdfastError('TX_NESTED')
      const builder = db.transaction()
      const taking: Taking = { client: undefined }
      const opening = isolation === undefined ? builder : builder.setIsolationLevel(isolation)
      return runInCallback({
        open: async (callback) =>
          asOurs(() =>
            noteTaken(taking, () => opening.execute(callback as (trx: unknown) => Promise<void>)),
          ).catch(nameAborted),
        join: (trx) => ({ ...join(trx), cancel: pgCancel(taking.client) }),
        body,
        // Newer versions look at COMMIT's command tag themselves, older ones and other dialects do
        // not, and they cannot be told apart.
        masksCommit: true,
        marked,
        hold: holdKysely,
      })
    },
  }
}
