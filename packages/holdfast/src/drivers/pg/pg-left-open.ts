import { leftOpen } from '../../core/errors/left-open.ts'
import { processWide } from '../../core/process-wide.ts'
import { isTaken } from '../parts/sole-client.ts'
import { pgTransactionState } from './pg-state.ts'

interface Told {
  readonly getTransactionStatus?: unknown
  readonly readyForQuery?: boolean
  readonly connection?: {
    on?(event: 'readyForQuery', listener: (message: { readonly status?: string }) => void): unknown
  }
}

/** What the server said last, of connections of a `pg` that does not keep it. */
const last = /* @__PURE__ */ processWide(
  'last-statuses/1',
  () => new WeakMap<object, { status: string | undefined }>(),
)

/**
 * Whether a transaction is open on the connection of a `pg` client that nobody should have one on. It costs nothing: the
 * server says so after every statement.
 */
export function isLeftOpen(client: unknown): boolean {
  const { getTransactionStatus, readyForQuery, connection } = (client ?? {}) as Told
  if (getTransactionStatus !== undefined) {
    return ['open', 'failed'].includes(pgTransactionState(client))
  }
  if (typeof connection?.on !== 'function') return false
  const known = last.get(connection)
  if (known !== undefined) return readyForQuery !== false && ['T', 'E'].includes(known.status ?? '')
  const made: { status: string | undefined } = { status: undefined }
  last.set(connection, made)
  connection.on('readyForQuery', ({ status }) => {
    made.status = status
  })
  return false
}

/**
 * Refuses a connection that has just been taken, if a transaction is open on it. `giveBack` closes it, so that nobody gets
 * it any more; or it does not, where a transaction of ours is on it: that goes on.
 *
 * @throws TX_SESSION_SHARED
 */
export function refuseLeftOpen(client: object, giveBack: (destroy: boolean) => unknown): void {
  if (!isLeftOpen(client)) return
  const { connection = client } = client as { readonly connection?: object }
  giveBack(!isTaken(client) && !isTaken(connection))
  throw leftOpen()
}
