import { bodyFailure, commitFailure } from '../core/commit-failure.ts'
import type { Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isConnectionLoss } from '../core/sql-state.ts'
import { probe } from '../engines/postgres/transaction.ts'
import type { PostgresJsHandle } from './postgres-js-handle.ts'
import { Lifetime, shield } from './postgres-js-shield.ts'

/** A transaction opened by `sql.begin()`, by us or by an ORM on top of postgres.js. */
export interface BeginTransaction<Tx, T> {
  open(callback: (native: Tx) => Promise<void>): Promise<unknown>
  /** The postgres.js handle beneath the native one. */
  handleOf(native: Tx): PostgresJsHandle
  /** The native handle, with another postgres.js handle beneath it. */
  onHandle(native: Tx, handle: PostgresJsHandle): Tx
  join(native: Tx, state: () => 'open' | 'none'): Transaction<Tx>
  body(transaction: Transaction<Tx>): Promise<T>
}

type Stage = 'opening' | 'body' | 'committing'

/**
 * Runs the body in `sql.begin()` and resolves only if PostgreSQL committed. If the connection is
 * lost while the body runs, it rejects at once, as `begin` does: the server has rolled back.
 */
export async function runInBegin<Tx, T>(how: BeginTransaction<Tx, T>): Promise<T> {
  const lifetime = new Lifetime()
  let stage = 'opening' as Stage
  let returned = false
  let done = undefined as { readonly result: T } | undefined
  let failure = undefined as { readonly error: unknown } | undefined
  let aborted = undefined as Promise<unknown> | undefined
  const opened = how.open(async (native) => {
    stage = 'body'
    const handle = how.handleOf(native)
    try {
      const shielded = how.onHandle(native, shield(handle, lifetime))
      const transaction = how.join(shielded, () => (lifetime.over ? 'none' : 'open'))
      done = { result: await how.body(transaction) }
    } catch (error) {
      failure = { error }
      throw error
    } finally {
      await lifetime.unlessLost(failure?.error)
      returned = true
    }
    stage = 'committing'
    aborted = whyAborted(handle)
  })
  // Before anything else reacts to it: a body that wakes up now must find the handle refusing.
  opened.catch((error: unknown) => {
    if (stage === 'body' && !returned) lifetime.lose(error)
  })
  try {
    await opened
  } catch (error) {
    if (stage === 'committing') throw await commitOutcome(error, aborted)
    if (failure !== undefined) throw bodyFailure(failure.error, lifetime.lost)
    throw bodyFailure(error, stage === 'body' || isConnectionLoss(error))
  } finally {
    lifetime.end()
  }
  const cause = await aborted
  if (cause !== undefined) throw holdfastError('TX_ROLLED_BACK', { cause })
  if (done === undefined) throw holdfastError('DRIVER_HANDLE_INVALID')
  return done.result
}

/**
 * Why the block was aborted before COMMIT, if it was. Sent without waiting, so that it travels with
 * COMMIT and costs no round trip; statements the body forgot to await have their turn before it.
 */
function whyAborted(handle: PostgresJsHandle): Promise<unknown> {
  return Promise.resolve(handle.unsafe(probe.text)).then(
    () => undefined,
    (error: unknown) => (isConnectionLoss(error) ? undefined : error),
  )
}

/** `begin` rejects with the first statement that failed, also if the body swallowed that. */
async function commitOutcome(
  error: unknown,
  aborted: Promise<unknown> | undefined,
): Promise<unknown> {
  // What was sent on a connection that broke may never be answered.
  const cause = isConnectionLoss(error) ? undefined : await aborted
  return cause === undefined
    ? commitFailure(error)
    : holdfastError('TX_ROLLED_BACK', { cause: error })
}
