import type { ErrorCode } from '../error-codes.ts'
import { holdfastError, isHoldfastError } from '../errors.ts'
import {
  couldNotConnect,
  isClientTimeout,
  isConnectionLoss,
  isPoolStarved,
  isUnanswered,
  sqlStateOf,
  wasNeverSent,
} from '../sql-state.ts'

/** A standby, or one that is just becoming a primary. At a failover that passes. */
const readOnly = '25006'

/**
 * Names the outcome of a COMMIT that did not succeed. An ERROR from the server means it rolled
 * back; a connection lost while COMMIT was in flight means nobody knows. Some clients send ROLLBACK
 * after a failed COMMIT and report *its* failure: with `masked`, "never sent" proves nothing.
 */
export function commitFailure(error: unknown, masked = false): unknown {
  if (isHoldfastError(error)) return error
  const named = rolledBack(error)
  if (named !== error) return named
  if (!masked && wasNeverSent(error)) return holdfastError('CONNECTION_LOST', { cause: error })
  if (isUnanswered(error)) return holdfastError('COMMIT_UNKNOWN', { cause: error })
  if (isClientTimeout(error)) return holdfastError('TX_CLIENT_TIMEOUT', { cause: error })
  return error
}

/** Of a statement of ours right after a body, as of COMMIT: something had failed, and the body went on as if not. */
export function rolledBack(error: unknown): unknown {
  return sqlStateOf(error) === '25P02' ? holdfastError('TX_ROLLED_BACK', { cause: error }) : error
}

/**
 * Names a failure before COMMIT was sent: whatever it was, PostgreSQL keeps nothing of it. Errors of the
 * caller's own code pass through untouched, also those of another database's connection: only the driver
 * knows whether it was the one of this transaction that was lost.
 */
export function bodyFailure(error: unknown, connectionLost: boolean): unknown {
  if (isHoldfastError(error) && !(connectionLost && sawNoTransaction(error))) return error
  if (connectionLost) return holdfastError('CONNECTION_LOST', { cause: error })
  if (isClientTimeout(error)) return holdfastError('TX_CLIENT_TIMEOUT', { cause: error })
  return error
}

/** A client that lets go of a lost connection makes its handle look like one outside of any transaction. */
function sawNoTransaction({ code }: { readonly code: ErrorCode }): boolean {
  return code.endsWith('_OUTSIDE_TRANSACTION')
}

/**
 * Names a failure before the body ran. The client speaks of its own connection then, whatever it says, and
 * nothing was begun on it.
 */
export function openingFailure(error: unknown): unknown {
  if (isHoldfastError(error)) return error
  if (isPoolStarved(error)) return holdfastError('POOL_STARVED', { cause: error })
  if (couldNotConnect(error) || isConnectionLoss(error))
    return holdfastError('CONNECTION_UNAVAILABLE', { cause: error })
  return bodyFailure(error, false)
}

/**
 * Names the failure of a statement that is a transaction of its own: nothing was sent, or `unknown`
 * because the answer was lost on its way, or the server's own error, which kept nothing.
 */
export function statementFailure(error: unknown, unknown: ErrorCode): unknown {
  if (isHoldfastError(error, 'COMMIT_UNKNOWN') && unknown !== 'COMMIT_UNKNOWN')
    return holdfastError(unknown, { cause: error })
  if (isHoldfastError(error)) return error
  if (isPoolStarved(error)) return holdfastError('POOL_STARVED', { cause: error })
  if (couldNotConnect(error) || sqlStateOf(error) === readOnly)
    return holdfastError('CONNECTION_UNAVAILABLE', { cause: error })
  if (wasNeverSent(error)) return holdfastError('CONNECTION_LOST', { cause: error })
  return isUnanswered(error) ? holdfastError(unknown, { cause: error }) : error
}
