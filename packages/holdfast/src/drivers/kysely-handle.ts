import type { Row, TransactionState } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'

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
export function kyselyState(handle: KyselyHandle): TransactionState {
  const { isTransaction, isCommitted, isRolledBack } = handle as KyselyHandle & {
    readonly isCommitted?: boolean
    readonly isRolledBack?: boolean
  }
  return isTransaction && isCommitted !== true && isRolledBack !== true ? 'open' : 'none'
}
