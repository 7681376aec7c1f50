import type { Row, TransactionState } from '../../core/driver.ts'
import { assertClient, type ClientKind } from '../../core/client-kind.ts'
import { holdfastError } from '../../core/errors.ts'

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
export interface KyselyHandle {
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

const abortedMark: symbol = Symbol.for('kysely.AbortedTransactionError')

/** Kysely's own word for a COMMIT that was answered with ROLLBACK. */
export function nameAborted(error: unknown): never {
  const aborted = typeof error === 'object' && error !== null && abortedMark in error
  throw aborted ? holdfastError('TX_ROLLED_BACK', { cause: error }) : error
}

const endedWords = /^Transaction is already (?:committed|rolled back)$/

/** Kysely's own words for a handle whose transaction is over; it has no class or code for them. */
export function nameEnded(error: unknown): never {
  const ended = error instanceof Error && endedWords.test(error.message)
  throw ended ? holdfastError('TX_HANDLE_ENDED', { cause: error }) : error
}

/** Plugins rename the columns of raw results as well, so ours go around them. */
export function kyselyRunner(
  handle: KyselyHandle,
): (text: string, values: readonly unknown[]) => Promise<Row[]> {
  const plain = handle.withoutPlugins()
  return async (text, values) => {
    const { rows } = await plain.executeQuery(kyselyQuery(text, [...values]))
    return rows as Row[]
  }
}

export function kyselyQuery(text: string, parameters: readonly unknown[]): KyselyQuery {
  return {
    sql: text,
    parameters,
    query: { kind: 'RawNode', sqlFragments: [text], parameters: [] },
    queryId: { queryId: 'holdfast' },
  }
}

/** An ended transaction refuses every query by itself; only a controlled one also says so. */
export function kyselyState(handle: KyselyHandle): TransactionState {
  const { isTransaction, isCommitted, isRolledBack } = handle as KyselyHandle & {
    readonly isCommitted?: boolean
    readonly isRolledBack?: boolean
  }
  return isTransaction && isCommitted !== true && isRolledBack !== true ? 'open' : 'none'
}

/** @throws DRIVER_HANDLE_INVALID */
export function assertKysely(
  db: KyselyDatabase,
  wanted: Parameters<typeof assertClient>[1] & { readonly kind: ClientKind },
): void {
  const { executeQuery } = (db ?? {}) as Partial<KyselyDatabase>
  assertClient(db, wanted, typeof executeQuery === 'function')
  if (typeof db.startTransaction === 'function') return
  const subject =
    'Kysely 0.28 or newer expected: a handle of older ones does not say that it is over'
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}

/** @throws DRIVER_HANDLE_INVALID */
export function assertKyselyHandle(tx: unknown): KyselyHandle {
  const handle = tx as Partial<KyselyHandle> | null | undefined
  if (typeof handle?.executeQuery === 'function' && typeof handle.isTransaction === 'boolean')
    return handle as KyselyHandle
  const subject = 'Kysely transaction expected'
  throw holdfastError('DRIVER_HANDLE_INVALID', { details: { subject } })
}
