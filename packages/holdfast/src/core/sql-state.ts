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
function* layersOf(error: unknown, depth = 0): Generator<Fields> {
  const fields = fieldsOf(error)
  if (fields === undefined || depth > depthLimit) return
  yield fields
  const inner = [
    fields['cause'],
    fields['driverError'],
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
      (layer['syscall'] === undefined ? asSqlState(layer['code']) : undefined)
    if (found !== undefined) return found
    writeConflict ||= layer['kind'] === 'TransactionWriteConflict' || layer['code'] === 'P2034'
  }
  return writeConflict ? '40001' : undefined
}

/** Prisma's own transaction timer ran out, or the transaction was closed under the caller. */
export function isClientTimeout(error: unknown): boolean {
  for (const layer of layersOf(error)) if (layer['code'] === 'P2028') return true
  return false
}

/** Sent by a server that is going away. */
const lostStates = new Set(['57P01', '57P02', '57P03', '57P05', '25P03', '25P04'])
/** Only database clients use these, so they mean *our* connection wherever they are seen. */
const clientCodes = new Set([
  'CONNECTION_CLOSED',
  'CONNECTION_ENDED',
  'CONNECTION_DESTROYED',
  'P1001',
  'P1017',
])
const clientKinds = new Set(['ConnectionClosed', 'DatabaseNotReachable'])
const clientMessages =
  /^connection terminated|^client has encountered a connection error|^client was closed and is not queryable|^server conn crashed/i
/** Any socket can fail like this, also one the caller's own code opened inside the body. */
const socketCodes = new Set([
  'ECONNRESET',
  'ECONNREFUSED',
  'ECONNABORTED',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
])

/** True if the error can only mean that the database connection was lost. */
export function isDatabaseConnectionLoss(error: unknown): boolean {
  const state = sqlStateOf(error)
  if (state !== undefined) return lostStates.has(state) || state.startsWith('08')
  for (const layer of layersOf(error)) {
    if (typeof layer['code'] === 'string' && clientCodes.has(layer['code'])) return true
    if (typeof layer['kind'] === 'string' && clientKinds.has(layer['kind'])) return true
    if (typeof layer['message'] === 'string' && clientMessages.test(layer['message'])) return true
  }
  return false
}

/** True if the connection was lost, given that the failing call was one to the database. */
export function isConnectionLoss(error: unknown): boolean {
  if (isDatabaseConnectionLoss(error)) return true
  for (const layer of layersOf(error)) {
    if (typeof layer['code'] === 'string' && socketCodes.has(layer['code'])) return true
  }
  return false
}

/** True if the client refused to send because it already knew the connection was gone. */
export function wasNeverSent(error: unknown): boolean {
  for (const layer of layersOf(error)) {
    const message = layer['message']
    if (
      typeof message === 'string' &&
      /not queryable|client was closed|query runner already released/i.test(message)
    )
      return true
  }
  return false
}
