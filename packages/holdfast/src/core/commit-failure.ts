import { holdfastError, isHoldfastError } from './errors.ts'
import {
  isClientTimeout,
  isConnectionLoss,
  isDatabaseConnectionLoss,
  sqlStateOf,
  wasNeverSent,
} from './sql-state.ts'

/**
 * Names the outcome of a COMMIT that did not succeed. An ERROR from the server means it rolled
 * back; a connection lost while COMMIT was in flight means nobody knows. Some clients send ROLLBACK
 * after a failed COMMIT and report *its* failure: with `masked`, "never sent" proves nothing.
 */
export function commitFailure(error: unknown, masked = false): unknown {
  if (isHoldfastError(error)) return error
  if (sqlStateOf(error) === '25P02') return holdfastError('TX_ROLLED_BACK', { cause: error })
  if (!masked && wasNeverSent(error)) return holdfastError('CONNECTION_LOST', { cause: error })
  if (isConnectionLoss(error)) return holdfastError('COMMIT_UNKNOWN', { cause: error })
  if (isClientTimeout(error)) return holdfastError('TX_CLIENT_TIMEOUT', { cause: error })
  return error
}

/**
 * Names a failure before COMMIT was sent: whatever it was, PostgreSQL keeps nothing of it. Errors
 * of the caller's own code, a failed HTTP call included, pass through untouched.
 */
export function bodyFailure(error: unknown, connectionLost = false): unknown {
  if (isHoldfastError(error)) return error
  if (connectionLost || isDatabaseConnectionLoss(error)) {
    return holdfastError('CONNECTION_LOST', { cause: error })
  }
  if (isClientTimeout(error)) return holdfastError('TX_CLIENT_TIMEOUT', { cause: error })
  return error
}
