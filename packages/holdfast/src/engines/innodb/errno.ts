import { layersOf } from '../../core/sql-state.ts'

/**
 * Errors of MariaDB and MySQL, by their number. The SQLSTATE is not enough: a wait that has ended (1205) and a
 * transaction that is gone (1020) are both HY000.
 */

/** Below are errors of sockets, which Node numbers as well; from 45000 on, those of the client `mariadb`. */
const [lowest, highest] = [1_000, 44_999]

function numberIn(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d{4,5}$/.test(value) ? Number(value) : value
  return typeof number === 'number' && Number.isInteger(number) && number >= lowest
    ? number
    : undefined
}

/** What a pool of `mariadb` says when it has no connection to give, whatever the reason is: that is beneath. */
const noneGiven = 45_028

/** The number that the server, or the client `mariadb`, has given to an error, however deep a client buried it. */
function anyErrnoOf(error: unknown): number | undefined {
  let outer: number | undefined
  for (const layer of layersOf(error)) {
    // Prisma's adapter has it as a text, and beside it the number that other errors of adapters may have.
    const found = numberIn(layer['originalCode']) ?? numberIn(layer['errno'])
    if (found !== undefined && found !== noneGiven) return found
    outer ??= found
  }
  return outer
}

/** Why a pool of `mariadb` has given no connection, if that is known; else the error as it is. */
export function beneathPool(error: unknown): unknown {
  const { errno, cause } = (error ?? {}) as { readonly errno?: unknown; readonly cause?: unknown }
  return errno === noneGiven && cause instanceof Error ? cause : error
}

/** The number of an error that the server has answered with, or `undefined` if it was none. */
export function errnoOf(error: unknown): number | undefined {
  const errno = anyErrnoOf(error)
  return errno === undefined || errno > highest || lostErrnos.has(errno) ? undefined : errno
}

const deadlock = 1213
const oldSnapshot = 1020
/** There is no room for more locks in the server's memory. */
const locksFull = 1206

/** The server has ended the whole transaction: what follows would be outside of it. */
export function endedTransaction(error: unknown): boolean {
  const errno = errnoOf(error)
  return errno === deadlock || errno === oldSnapshot || errno === locksFull
}

/** A change of what the transaction's snapshot has not seen; MariaDB says so where it keeps snapshots apart. */
export function isOldSnapshot(error: unknown): boolean {
  return errnoOf(error) === oldSnapshot
}

/** The limits that we set ourselves, on MariaDB and on MySQL. */
const ownLimits: ReadonlySet<number | undefined> = new Set([1969, 3024])
/** The server's own limit, or NOWAIT; of MySQL NOWAIT. The transaction goes on, with all its locks. */
const serverLimits: ReadonlySet<number | undefined> = new Set([1205, 3572])

/** Which limit ended a wait, if one did. */
export function waitEndedBy(error: unknown): 'ours' | 'server' | undefined {
  const errno = errnoOf(error)
  if (ownLimits.has(errno)) return 'ours'
  return serverLimits.has(errno) ? 'server' : undefined
}

/** The server's own limit of a wait, for a row or for a table; of MariaDB NOWAIT as well. */
export function isWaitOver(error: unknown): boolean {
  return errnoOf(error) === 1205
}

/** Some option forbids it; which one, only the text says. */
const forbidden = 1290
const readOnlyMode = 1836

/**
 * The server takes no writes; it says so of locking reads as well. A transaction that takes none (1792) is the caller's
 * own, and the server's words for it are the best.
 */
export function isReadOnly(error: unknown): boolean {
  const errno = errnoOf(error)
  if (errno !== forbidden) return errno === readOnlyMode
  for (const { message } of layersOf(error))
    if (typeof message === 'string' && /read[-_ ]only/i.test(message)) return true
  return false
}

export function isMissingTable(error: unknown): boolean {
  return errnoOf(error) === 1146
}

/** A right is missing: for a table, for what the whole server does, or for somebody else's session. */
export function isDenied(error: unknown): boolean {
  const errno = errnoOf(error)
  return errno === 1142 || errno === 1227 || errno === 1095 || errno === 1044
}

/** The connection, or the statement, that was to be ended is not there. */
export function isNothingToEnd(error: unknown): boolean {
  const errno = errnoOf(error)
  return errno === 1094 || errno === 1957
}

/** An index that a statement names is not there, or may not be used. */
export function isMissingIndex(error: unknown): boolean {
  return errnoOf(error) === 1176
}

/** A row that is there already. */
export function isDuplicate(error: unknown): boolean {
  return errnoOf(error) === 1062
}

/** A savepoint that is not there: of a transaction that is not there either. */
export function isMissingSavepoint(error: unknown): boolean {
  return errnoOf(error) === 1305
}

/** A level cannot be chosen any more: somebody has left a transaction open on this connection. */
export function isInsideAlready(error: unknown): boolean {
  return errnoOf(error) === 1568
}

/** A prepared statement is not there any more, and nothing was run; the second is said by the client `mariadb`. */
export function isNotPrepared(error: unknown): boolean {
  const errno = anyErrnoOf(error)
  return errno === 1243 || errno === 45051
}

/** Said by a server that is going away or ends this connection, and by the client `mariadb` (45xxx). */
const lostErrnos: ReadonlySet<number> = new Set([
  1053, 1077, 1079, 1080, 1152, 1153, 1158, 1159, 1160, 1161, 1184, 1927, 2006, 2013, 2055, 3169,
  4031, 45009, 45012, 45013, 45026, 45028, 45033, 45034, 45035, 45036, 45037, 45047,
])
/** Of `mysql2`, and of sockets. */
const lostCodes: ReadonlySet<unknown> = new Set([
  'PROTOCOL_CONNECTION_LOST',
  'PROTOCOL_SEQUENCE_TIMEOUT',
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])
/** Of `mysql2`, about a connection that it knew to be closed. */
const neverSent = /^can't add new command when connection is in closed state/i

/** True if the connection was lost, given that the failing call was one to the database. */
export function isConnectionLoss(error: unknown): boolean {
  const errno = anyErrnoOf(error)
  if (errno !== undefined && lostErrnos.has(errno)) return true
  for (const { code, message } of layersOf(error)) {
    if (lostCodes.has(code)) return true
    if (errno === undefined && typeof message === 'string' && neverSent.test(message)) return true
  }
  return false
}

/** True if the client did not send it, because it knew already that the connection was gone. */
export function wasNeverSent(error: unknown): boolean {
  const errno = anyErrnoOf(error)
  if (errno === 45013) return true
  for (const { message } of layersOf(error)) {
    if (errno === undefined && typeof message === 'string' && neverSent.test(message)) return true
  }
  return false
}

/** Refused before anything could be sent, for a reason that may pass: too many connections, starting up. */
const passing: ReadonlySet<number> = new Set([1040, 1203, 1226, 45012, 45028])
const starved =
  /^no connections available|^queue limit reached|retrieve connection from pool timeout/i

const noneInUse = /\bactive=0\b/

/** True if all connections of the client's pool were in use for longer than it waits: nothing was begun. */
export function isPoolStarved(error: unknown): boolean {
  for (const { errno, message } of layersOf(beneathPool(error))) {
    const text = typeof message === 'string' ? message : ''
    // With none in use there is none to wait for: the server does not answer.
    if (errno === noneGiven ? !noneInUse.test(text) : starved.test(text)) return true
  }
  return false
}

/** True if no connection could be had, for a reason that may pass. */
export function couldNotConnect(error: unknown): boolean {
  const errno = anyErrnoOf(error)
  if (errno !== undefined && passing.has(errno)) return true
  for (const { syscall } of layersOf(error)) if (syscall === 'connect') return true
  return isConnectionLoss(error)
}

/**
 * The code by which a retry policy knows an error: those of PostgreSQL for what means the same, so that a policy says
 * the same on every database; else the number.
 */
export function codeOf(error: unknown): string | undefined {
  const errno = errnoOf(error)
  if (errno === deadlock) return '40P01'
  if (errno === oldSnapshot) return '40001'
  return errno === undefined ? undefined : String(errno)
}
