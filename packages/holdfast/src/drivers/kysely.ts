import type { Driver, Row, Transaction, TransactionState } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { withSavepoint } from '../engines/postgres/savepoint.ts'
import { runInCallback } from './callback-transaction.ts'
import { hearPool, unlessHeard } from './sync-wait.ts'

/** What `CompiledQuery.raw()` makes; Kysely asks for the shape, not for the maker. */
interface KyselyQuery {
  readonly sql: string
  readonly parameters: readonly unknown[]
  readonly query: {
    readonly kind: 'RawNode'
    readonly sqlFragments: readonly string[]
    readonly parameters: readonly never[]
  }
  readonly queryId: { readonly queryId: string }
}

/** The part of any Kysely instance we use: the root, a transaction, a controlled transaction. */
interface KyselyHandle {
  readonly isTransaction: boolean
  executeQuery(query: KyselyQuery): Promise<{ readonly rows: unknown[] }>
  withoutPlugins(): KyselyHandle
}

interface KyselyTransactionBuilder {
  setIsolationLevel(level: string): KyselyTransactionBuilder
  execute(callback: (trx: unknown) => Promise<unknown>): Promise<unknown>
}

/** The part of a `Kysely<DB>` we use. */
export interface KyselyDatabase extends KyselyHandle {
  transaction(): KyselyTransactionBuilder
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
   * Holdfast has to hear if the wait for the standby is cancelled.
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
  { pool }: KyselyOptions = {},
): Driver<KyselyTransactionOf<Db>> {
  type Tx = KyselyTransactionOf<Db>
  hearPool(pool)
  const join = (tx: Tx): Transaction<Tx> => {
    const handle = assertHandle(tx)
    const run = runner(handle)
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
  const alone = runner(db)
  return {
    name: 'kysely',
    engine: 'postgres',
    capabilities: { pipelines: false },
    alone: { query: async ({ text, values }) => unlessHeard(() => alone(text, values)) },
    join,
    async transaction(body, { isolation }) {
      if (db.isTransaction) throw holdfastError('TX_NESTED')
      const builder = db.transaction()
      const opening = isolation === undefined ? builder : builder.setIsolationLevel(isolation)
      return runInCallback({
        open: async (callback) =>
          opening.execute(callback as (trx: unknown) => Promise<void>).catch(nameAborted),
        join,
        body,
        // Newer versions look at COMMIT's command tag themselves, older ones and other dialects do
        // not, and they cannot be told apart.
        masksCommit: true,
      })
    },
  }
}

const abortedMark: symbol = Symbol.for('kysely.AbortedTransactionError')

/** Kysely's own word for a COMMIT that was answered with ROLLBACK. */
function nameAborted(error: unknown): never {
  const aborted = typeof error === 'object' && error !== null && abortedMark in error
  throw aborted ? holdfastError('TX_ROLLED_BACK', { cause: error }) : error
}

/** Plugins rename the columns of raw results as well, so ours go around them. */
function runner(
  handle: KyselyHandle,
): (text: string, values: readonly unknown[]) => Promise<Row[]> {
  const plain = handle.withoutPlugins()
  return async (text, values) => {
    const { rows } = await plain.executeQuery({
      sql: text,
      parameters: [...values],
      query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
      queryId: { queryId: 'holdfast' },
    })
    return rows as Row[]
  }
}

/** An ended transaction refuses every query by itself; only a controlled one also says so. */
function kyselyState(handle: KyselyHandle): TransactionState {
  const { isTransaction, isCommitted, isRolledBack } = handle as KyselyHandle & {
    readonly isCommitted?: boolean
    readonly isRolledBack?: boolean
  }
  return isTransaction && isCommitted !== true && isRolledBack !== true ? 'open' : 'none'
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
