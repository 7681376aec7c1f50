import type { TransactionState } from '../../core/driver.ts'

/** Newer `pg` tells the state of its connection; older ones leave it to the server. */
interface Observable {
  getTransactionStatus?(): string | null
  readonly readyForQuery?: boolean
  /** Only a pool has it. */
  readonly totalCount?: number
}

/**
 * What a `pg` client knows about its transaction. Also used for clients beneath an ORM. While a
 * statement is under way, or has failed and the server has not yet said what that did to the
 * transaction, the last known state is no answer.
 */
export function pgTransactionState(client: unknown): TransactionState {
  const handle = client as Observable
  if (handle.totalCount !== undefined) return 'none'
  if (typeof handle.getTransactionStatus !== 'function') return 'unknown'
  if (handle.readyForQuery === false) return 'unknown'
  const status = handle.getTransactionStatus()
  if (status === 'T') return 'open'
  return status === 'E' ? 'failed' : 'none'
}
