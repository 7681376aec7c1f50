import type { Driver, Row, Transaction, TransactionState } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { asOurs } from '../core/open-transactions.ts'
import { within } from '../core/within.ts'
import { withSavepoint } from '../engines/postgres/savepoint.ts'
import { type Held, runInCallback } from './callback-transaction.ts'
import type { Leash } from './leash.ts'
import { leftoverMs } from './pg-leash.ts'
import { pgCancel } from './pg-cancel.ts'
import { noteTaken, type Taking, watchRoot } from './root-client.ts'
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
  { pool }: KyselyOptions = {},
): Driver<KyselyTransactionOf<Db>> {
  type Tx = KyselyTransactionOf<Db>
  hearPool(pool)
  const root = watchRoot(pool)
  const join = (tx: Tx): Transaction<Tx> => {
    const handle = assertHandle(tx)
    const plain = runner(handle)
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
  const alone = runner(db)
  return {
    name: 'kysely',
    engine: 'postgres',
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
        hold,
      })
    },
  }
}

/** What a transaction runs its statements on. */
interface KyselyConnection {
  executeQuery(query: { readonly sql: string }, options?: unknown): Promise<unknown>
  streamQuery(query: { readonly sql: string }, ...rest: unknown[]): AsyncIterableIterator<unknown>
}

interface KyselyInside {
  getExecutor?(): {
    provideConnection?<T>(use: (connection: KyselyConnection) => Promise<T>): Promise<T>
  }
}

/**
 * Statements are stopped at the connection, as Kysely's own logging does: whatever plugin or builder they
 * come from, they pass there, COMMIT included. It is ours alone until the transaction is over.
 */
async function hold<Tx>(native: Tx, leash: Leash): Promise<Held<Tx>> {
  const executor = (native as KyselyInside).getExecutor?.()
  const connection = await executor?.provideConnection?.(async (given) => given)
  if (connection === undefined) return { native }
  const { executeQuery, streamQuery } = connection
  const free = (): void => {
    if (connection.executeQuery === held) Object.assign(connection, { executeQuery, streamQuery })
  }
  const held: KyselyConnection['executeQuery'] = async (query, options) => {
    leash.assertMay(query.sql)
    try {
      return await leash.during(() => executeQuery.call(connection, query, options))
    } finally {
      // Before the connection goes back to the pool, where the next one may hold it at once.
      if (leash.ending) free()
    }
  }
  connection.executeQuery = held
  const open = new Set<AsyncIterableIterator<unknown>>()
  connection.streamQuery = async function* streamed(query, ...rest) {
    leash.assertMay(query.sql)
    leash.sent()
    const rows = streamQuery.call(connection, query, ...rest)
    open.add(rows)
    try {
      for (let next = await rows.next(); next.done !== true; next = await rows.next()) {
        yield next.value
        // What waits behind it in Kysely would be let in, to a connection that is somebody else's by now.
        if (!leash.isHeld) await Promise.withResolvers<never>().promise
      }
    } finally {
      if (leash.isHeld) await rows.return?.()
      open.delete(rows)
      leash.answered()
    }
  }
  return {
    native,
    free,
    // Kysely lets statements in one by one: whatever waits has had its turn, and was refused, before ours.
    settle: async () => {
      if (open.size === 0) await executor?.provideConnection?.(async () => undefined)
    },
    // ROLLBACK, which goes past that queue, would wait for rows that were not all read.
    async rest() {
      if (open.size === 0) return true
      await within(Promise.all([...open].map(async (rows) => await rows.return?.())), leftoverMs)
      return false
    },
  }
}

const abortedMark: symbol = Symbol.for('kysely.AbortedTransactionError')

/** Kysely's own word for a COMMIT that was answered with ROLLBACK. */
function nameAborted(error: unknown): never {
  const aborted = typeof error === 'object' && error !== null && abortedMark in error
  throw aborted ? holdfastError('TX_ROLLED_BACK', { cause: error }) : error
}

const endedWords = /^Transaction is already (?:committed|rolled back)$/

/** Kysely's own words for a handle whose transaction is over; it has no class or code for them. */
function nameEnded(error: unknown): never {
  const ended = error instanceof Error && endedWords.test(error.message)
  throw ended ? holdfastError('TX_HANDLE_ENDED', { cause: error }) : error
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
