/**
 * Finds the SQLSTATE of an error however deep a client buried it, and tells lost connections from
 * answered statements. Shapes and versions: docs/drivers.md; each is provoked by the conformance
 * suite.
 */

type Fields = Readonly<Record<string, unknown>>

/** PostgreSQL's codes have five characters; Prisma's own (P1xxx–P6xxx) have five as well. */
const sqlStatePattern = /^(?=.*[0-9])[0-9A-Z]{5}$/
const prismaPattern = /^P[1-9][0-9]{3}$/
/** Wrappers seen so far nest at most four deep; the bound keeps a cyclic cause from hanging us. */
const depthLimit = 8

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === 'object' && value !== null ? (value as Fields) : undefined
}

function asSqlState(value: unknown): string | undefined {
  if (typeof value !== 'string') return undefined
  return sqlStatePattern.test(value) && !prismaPattern.test(value) ? value : undefined
}

/** Everything an error may be wrapped around, nearest first. */
export function* layersOf(error: unknown, depth = 0): Generator<Fields> {
  const fields = fieldsOf(error)
  if (fields === undefined || depth > depthLimit) return
  yield fields
  const inner = [
    fields['cause'],
    fields['driverError'],
    // Of Sequelize 6.
    fields['original'],
    fields['meta'],
    fields['driverAdapterError'],
  ]
  const many = fields['errors']
  if (Array.isArray(many)) inner.push(...(many as unknown[]))
  for (const value of inner) yield* layersOf(value, depth + 1)
}

/** The SQLSTATE inside an error of any supported client, or `undefined` if the server sent none. */
export function sqlStateOf(error: unknown): string | undefined {
  let writeConflict = false
  for (const layer of layersOf(error)) {
    // Socket errors carry `syscall`; their codes (E2BIG, …) can look like a SQLSTATE.
    const found =
      asSqlState(layer['originalCode']) ??
      asSqlState(layer['sqlState']) ??
      (layer['syscall'] === undefined ? asSqlState(layer['code']) : undefined) ??
      // Of Bun's SQL client, beneath a query builder.
      (layer['code'] === 'ERR_POSTGRES_SERVER_ERROR' ? asSqlState(layer['errno']) : undefined)
    if (found !== undefined) return found
    writeConflict ||= layer['kind'] === 'TransactionWriteConflict' || layer['code'] === 'P2034'
  }
  return writeConflict ? '40001' : undefined
}

/** Prisma's own code of an error, which stands beside the server's, if there is one. */
export function prismaCodeOf(error: unknown): string | undefined {
  for (const { code } of layersOf(error)) {
    if (typeof code === 'string' && prismaPattern.test(code)) return code
  }
  return undefined
}

/** MariaDB and MySQL number their errors; one SQLSTATE has many of them. What begins with 4 is a SQLSTATE misspelt. */
const errnoPattern = /^[1-3][0-9]{3}$/

/** True if it is written like a SQLSTATE, like a code of Prisma, or like the number of an error of MariaDB or MySQL. */
export function isServerCode(code: string): boolean {
  return sqlStatePattern.test(code) || errnoPattern.test(code)
}

/** The code of the socket inside an error, ECONNREFUSED or ENOTFOUND, if there is one. */
export function socketCodeOf(error: unknown): string | undefined {
  for (const { code } of layersOf(error)) {
    if (typeof code === 'string' && /^E[A-Z]+(?:_[A-Z]+)?$/.test(code)) return code
  }
  return undefined
}

/** True if somebody has cancelled the statement, as far as a server that speaks English says so. */
export function wasCanceled(error: unknown): boolean {
  if (sqlStateOf(error) !== '57014') return false
  for (const { message } of layersOf(error)) {
    if (typeof message === 'string' && /due to user request/i.test(message)) return true
  }
  return false
}

/** True if it was a row that was waited for, whose table was granted: the server says where it is. */
export function waitedForRow(error: unknown): boolean {
  for (const { where } of layersOf(error)) {
    if (typeof where === 'string' && /\(\d+,\d+\)/.test(where)) return true
  }
  return false
}

/** What pools say that gave up waiting for a free connection: `pg-pool`, Prisma by its `maxWait`, Knex, Sequelize. */
const starvedMessages =
  /^timeout exceeded when trying to connect|unable to start a transaction in the given time|^knex: timeout acquiring a connection|^operation timeout$/i

/** True if all connections of the client's pool were in use for longer than it waits: nothing was begun. */
export function isPoolStarved(error: unknown): boolean {
  return clientSays(error, starvedMessages)
}

/** Prisma's own transaction timer ran out, or the transaction was closed under the caller. */
export function isClientTimeout(error: unknown): boolean {
  for (const layer of layersOf(error)) if (layer['code'] === 'P2028') return true
  return false
}

/** Sent by a server that is going away. */
const lostStates = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25P04'])
/** Refused before anything could be sent: starting up or shutting down, no slot, no entry, no such database. */
const refusedStates = new Set(['57P03', '53300', '08001', '08004', '28000', '28P01', '3D000'])
/** Of those, the ones that come and go by themselves. */
const passingStates = new Set(['57P03', '53300', '08001', '08004'])
const clientKinds = new Set(['ConnectionClosed', 'DatabaseNotReachable'])
const clientMessages =
  /^connection terminated|^client has encountered a connection error|^client was closed and is not queryable|^server conn crashed/i
/** Of clients, and of sockets. */
const lostCodes = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'P1001',
  'P1017',
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

/**
 * True if the server has answered with an ERROR, after which the connection is still there: somebody's function has
 * raised a state that is otherwise that of a lost one, as dblink does. Who ends a connection says FATAL, but for
 * poolers, which have 08P01 for everything. In other languages `pg` has other words, and then nothing is known.
 */
function wasAnswered(error: unknown): boolean {
  const state = sqlStateOf(error)
  if (state === undefined || state === '08P01') return false
  for (const { severity } of layersOf(error)) {
    if (typeof severity === 'string') return severity === 'ERROR'
  }
  return false
}

/** True if the error came out of a function or trigger, and not of the statement itself. */
export function wasRaisedInside(error: unknown): boolean {
  for (const { where } of layersOf(error))
    if (typeof where === 'string' && where !== '') return true
  return false
}

/** True if the connection was lost, given that the failing call was one to the database. */
export function isConnectionLoss(error: unknown): boolean {
  if (wasAnswered(error)) return false
  const state = sqlStateOf(error)
  if (state !== undefined && (lostStates.has(state) || state.startsWith('08'))) return true
  for (const { code, kind, message } of layersOf(error)) {
    if (typeof code === 'string' && lostCodes.has(code)) return true
    if (state !== undefined) continue
    if (typeof kind === 'string' && clientKinds.has(kind)) return true
    if (typeof message === 'string' && clientMessages.test(message)) return true
  }
  return false
}

/** True if the client gave up waiting for an answer (`query_timeout` of pg), which may still come. */
export function isUnanswered(error: unknown): boolean {
  return clientSays(error, /^query read timeout/i) || isConnectionLoss(error)
}

/** In words of the client's own: what has a SQLSTATE are words of the server, and of whoever wrote its rules. */
function clientSays(error: unknown, words: RegExp): boolean {
  if (sqlStateOf(error) !== undefined) return false
  for (const { message } of layersOf(error)) {
    if (typeof message === 'string' && words.test(message)) return true
  }
  return false
}

/** Codes and kinds of clients that mean: not even connected. */
const unconnected = new Set([
  'CONNECT_TIMEOUT',
  'P1001',
  'DatabaseNotReachable',
  'ECONNREFUSED',
  'ENOTFOUND',
  'EAI_AGAIN',
])
/** PgBouncer's limit, which has not given the statement to a server. */
const neverForwarded = /^query_wait_timeout|^pgbouncer cannot connect to server/i
/** Of `pg-pool`, and of `pg` itself, about a server that accepts a connection and says nothing. */
const connectTimeouts = /^connection terminated due to connection timeout|^timeout expired$/i

/**
 * True if no connection could be had, for a reason that may pass, so that the failing call, which was one
 * to the database, was never sent.
 */
export function couldNotConnect(error: unknown): boolean {
  if (wasAnswered(error)) return false
  const state = sqlStateOf(error)
  if (state !== undefined && refusedStates.has(state)) return passingStates.has(state)
  for (const { code, kind, syscall, message } of layersOf(error)) {
    if (syscall === 'connect' || unconnected.has(String(code)) || unconnected.has(String(kind)))
      return true
    if (typeof message === 'string' && neverForwarded.test(message)) return true
  }
  return clientSays(error, connectTimeouts)
}

/** True if the client refused to send because it already knew the connection was gone. */
export function wasNeverSent(error: unknown): boolean {
  return clientSays(error, /not queryable|client was closed|query runner already released/i)
}
