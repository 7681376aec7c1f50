import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import { withSavepoint } from '../engines/postgres/tx/savepoint.ts'
import { runInCallback } from './callback-transaction.ts'
import {
  type KyselyHandle,
  kyselyRunner,
  kyselyState,
  nameAborted,
  nameEnded,
} from './kysely-handle.ts'
import { holdKysely } from './kysely-leash.ts'
import { pgCancel } from './pg-cancel.ts'
import { noteTaken, type Taking, watchRoot } from './root-client.ts'
import { hearPool, unlessHeard } from './sync-wait.ts'
import { objectGiven } from '../core/given.ts'
import { optionsGiven } from '../core/known-options.ts'
import { kyselyOptions } from './known-options.ts'
import { assertClient as assertKind } from '../core/client-kind.ts'
import { postgres } from '../engines/postgres/engine.ts'

interface KyselyTransactionBuilder {
  setIsolationLevel(level: string): KyselyTransactionBuilder
  execute(callback: (trx: unknown) => Promise<unknown>): Promise<unknown>
}

/** The part of a `Kysely<DB>` we use. */
export interface KyselyDatabase extends KyselyHandle {
  transaction(): KyselyTransactionBuilder
  /** Since 0.28. Before, a handle does not say that its transaction has ended. */
  startTransaction: unknown
}

/** `Transaction<DB>` of a `Kysely<DB>`; of a transaction, that transaction. */
export type KyselyTransactionOf<Db> = Db extends { readonly isTransaction: true }
  ? Db
  : Db extends {
        transaction(): { execute(callback: (trx: infer Trx) => Promise<unknown>): unknown }
      }
    ? Trx
    : never

/** Settings of `fromKysely`. */
export interface KyselyOptions {
  /**
   * The `pg` pool of the dialect, which Kysely hides. Only listened to: with synchronous replication
   * Holdfast has to hear if the wait for the standby is cancelled, a body that uses it is reported, and a
   * statement that is to end can be cancelled without a connection of the pool.
   */
  readonly pool?: object
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
  const wanted = { kind: 'kysely', by: 'fromKysely', is: 'a Kysely instance' } as const
  assertKind(db, wanted, typeof (db as Partial<Db> | null)?.executeQuery === 'function')
  if (typeof db.startTransaction !== 'function') {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: {
        subject:
          'Kysely 0.28 or newer expected: a handle of older ones does not say that it is over',
      },
    })
  }
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
      query: async ({ text, values }) => unlessHeard(() => asOurs(() => alone(text, values))),
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

function assertHandle(tx: unknown): KyselyHandle {
  const handle = tx as Partial<KyselyHandle> | null | undefined
  if (typeof handle?.executeQuery !== 'function' || typeof handle.isTransaction !== 'boolean') {
    throw holdfastError('DRIVER_HANDLE_INVALID', {
      details: { subject: 'Kysely transaction expected' },
    })
  }
  return handle as KyselyHandle
}
