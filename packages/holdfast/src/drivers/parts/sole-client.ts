import { holdfastError } from '../../core/errors.ts'
import { processWide } from '../../core/process-wide.ts'

/** Connections that a transaction of ours is on; the connection itself where its client tells it, because clients may be wrapped. */
const taken = /* @__PURE__ */ processWide('taken-clients/1', () => new WeakSet<object>())

/** Whether a transaction of ours is on it. */
export function isTaken(client: object): boolean {
  return taken.has(client)
}

/**
 * Takes a connection for one transaction, and gives what frees it. A pool that hands out a connection twice gives two
 * transactions one session.
 *
 * @throws TX_SESSION_SHARED
 */
export function takeAlone(client: object): () => void {
  if (taken.has(client)) throw holdfastError('TX_SESSION_SHARED')
  taken.add(client)
  return () => taken.delete(client)
}
