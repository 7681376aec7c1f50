import { holdfastError } from '../errors.ts'

/**
 * The pool gave a connection on which somebody has left a transaction open. It is closed, and with it ends what was left
 * open: whoever began that has given it back, and the next COMMIT of somebody else would save it.
 */
export function leftOpen(cause?: unknown): Error {
  const subject =
    'a transaction was open on the connection that the pool gave, and nothing was done; end yours before you give a connection back: look for a release() without COMMIT or ROLLBACK'
  return holdfastError('TX_SESSION_SHARED', { cause, details: { subject } })
}
