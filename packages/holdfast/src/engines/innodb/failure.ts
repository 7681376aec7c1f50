import type { ErrorCode } from '../../core/error-codes.ts'
import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import {
  beneathPool,
  couldNotConnect,
  endedTransaction,
  errnoOf,
  isConnectionLoss,
  isPoolStarved,
  waitEndedBy,
  isReadOnly,
  wasNeverSent,
} from './errno.ts'

/**
 * Names the outcome of a COMMIT that was sent and did not succeed. Only of some answers is it known that nothing was saved; a lost
 * connection looks the same whether it was lost just before or just after the server has committed.
 */
export function commitFailure(error: unknown): unknown {
  if (isHoldfastError(error)) return error
  // Certification (1213), a lock on all tables (1205), a server that has stopped taking writes.
  const isUndone = endedTransaction(error) || waitEndedBy(error) !== undefined || isReadOnly(error)
  return isUndone ? error : holdfastError('COMMIT_UNKNOWN', { cause: error })
}

/** Names a failure before COMMIT was sent: whatever it was, the server keeps nothing of it. */
export function bodyFailure(error: unknown, connectionLost: boolean): unknown {
  if (isHoldfastError(error) && !(connectionLost && sawNoTransaction(error))) return error
  return connectionLost ? holdfastError('CONNECTION_LOST', { cause: error }) : error
}

/** A connection that is gone looks like one outside of any transaction. */
function sawNoTransaction({ code }: { readonly code: ErrorCode }): boolean {
  return code.endsWith('_OUTSIDE_TRANSACTION')
}

/**
 * Names the failure of a statement, or of a short transaction, of our own: as `statementFailure` does for PostgreSQL. What
 * went wrong before there was a connection has its name already.
 */
export function callFailure(error: unknown, unknown: ErrorCode): unknown {
  if (isHoldfastError(error)) return error
  if (isReadOnly(error)) return holdfastError('CONNECTION_UNAVAILABLE', { cause: error })
  if (wasNeverSent(error)) return holdfastError('CONNECTION_LOST', { cause: error })
  return isConnectionLoss(error) ? holdfastError(unknown, { cause: error }) : error
}

/** Names a failure before anything was begun. */
export function openingFailure(error: unknown): unknown {
  if (isHoldfastError(error)) return error
  if (isPoolStarved(error)) return holdfastError('POOL_STARVED', { cause: error })
  const isPassing = errnoOf(error) === undefined || couldNotConnect(error)
  return isPassing && (couldNotConnect(error) || isConnectionLoss(error))
    ? holdfastError('CONNECTION_UNAVAILABLE', { cause: error })
    : beneathPool(error)
}
