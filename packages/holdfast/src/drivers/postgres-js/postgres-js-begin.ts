import { bodyFailure, commitFailure, openingFailure } from '../../core/errors/commit-failure.ts'
import type { Transaction } from '../../core/driver.ts'
import { holdfastError } from '../../core/errors.ts'
import { isConnectionLoss } from '../../core/sql-state.ts'
import { commitAndChainText, commitText } from '../../engines/postgres/tx/transaction.ts'
import { endedIfNone, Leash } from '../parts/leash.ts'
import type { PostgresJsHandle } from './postgres-js-handle.ts'
import type { LeashedQueries } from './postgres-js-queries.ts'
import { Lifetime, shield } from './postgres-js-shield.ts'
import { hearing } from '../parts/sync-wait.ts'

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
 * Runs the body in `sql.begin()` and resolves only if PostgreSQL committed. If the connection is lost while
 * the body runs, `begin` rejects at once; we wait for the body, which may be run again and must not meet itself.
 */
export async function runInBegin<Tx, T>(how: BeginTransaction<Tx, T>): Promise<T> {
  const lifetime = new Lifetime()
  const leash = new Leash()
  const commit = new Commit()
  const bodyOver = Promise.withResolvers<void>()
  let stage = 'opening' as Stage
  let returned = false
  let done = undefined as { readonly result: T } | undefined
  let failure = undefined as { readonly error: unknown } | undefined
  const opened = how.open(async (native) => {
    stage = 'body'
    const handle = how.handleOf(native)
    const held = shield(handle, lifetime, leash)
    try {
      const transaction = how.join(how.onHandle(native, held.handle), () =>
        lifetime.over ? 'none' : 'open',
      )
      const cancel = (): Promise<void> => held.queries.cancel()
      done = { result: await how.body({ ...transaction, cancel }) }
    } catch (error) {
      // From here on the body's handle is of no use, also for what it has left behind.
      failure = { error: leash.failed(error) }
      throw error
    } finally {
      bodyOver.resolve()
      await lifetime.unlessLost(failure?.error)
      if (failure !== undefined) await givenUp(held.queries)
      returned = failure !== undefined
    }
    try {
      leash.end(held.queries.busy || held.queries.forgotten)
    } catch (error) {
      failure = { error }
      await givenUp(held.queries)
      throw error
    } finally {
      returned = true
    }
    stage = 'committing'
    commit.send(handle)
  })
  // The connection may be lost meanwhile, and then ROLLBACK must not be sent.
  async function givenUp(queries: LeashedQueries): Promise<void> {
    if (!queries.busy) return
    await queries.giveUp()
    await lifetime.unlessLost()
  }
  // Before anything else reacts to it: a body that wakes up now must find the handle refusing.
  opened.catch((error: unknown) => {
    if (stage === 'body' && !returned) lifetime.lose(error)
  })
  try {
    await Promise.race([opened, commit.refused])
  } catch (error) {
    if (stage === 'body') await bodyOver.promise
    if (failure !== undefined) {
      // Where it was lost after all, postgres.js has failed to roll back.
      const lost = lifetime.lost || (error !== failure.error && isConnectionLoss(error))
      throw leash.failed(bodyFailure(failure.error, lost))
    }
    if (stage === 'opening') throw openingFailure(error)
    if (stage === 'body') throw leash.failed(bodyFailure(error, true))
    commit.assertDone(error)
  } finally {
    leash.close()
    lifetime.end()
  }
  commit.assertDone()
  if (done === undefined) throw holdfastError('DRIVER_HANDLE_INVALID')
  return done.result
}

/**
 * The COMMIT of a transaction. postgres.js sends one as well, and does not look at the answer. What
 * is more, it prepares its own and sends it again if the server has forgotten it (DEALLOCATE ALL,
 * a pooler): by then the transaction is aborted, COMMIT is a rollback, and `begin` resolves. So ours
 * goes first, in the same packet, and leaves an empty transaction for the other to end.
 */
class Commit {
  readonly #refused = Promise.withResolvers<void>()
  #answer: { readonly tag: unknown } | { readonly error: unknown } | undefined
  #assertSynced = (): void => undefined

  /** Sent without waiting; statements the body forgot to await have their turn before it. */
  send(handle: PostgresJsHandle): void {
    this.#assertSynced = hearing()
    handle.unsafe(commitAndChainText).then(
      (result) => {
        this.#answer = { tag: (result as { readonly command?: unknown }).command }
      },
      (error: unknown) => {
        this.#answer = { error }
        this.#refused.resolve()
      },
    )
  }

  /** Resolves if COMMIT failed; what `begin` makes of it need not be waited for. */
  get refused(): Promise<void> {
    return this.#refused.promise
  }

  /**
   * Throws unless the server said COMMIT. What `begin` rejected with comes second: after our COMMIT
   * it is about the empty transaction, or about an error that the body swallowed.
   */
  assertDone(rejection?: unknown): void {
    if (this.#answer === undefined) {
      // `begin` gave up before COMMIT was answered.
      throw rejection === undefined ? holdfastError('COMMIT_UNKNOWN') : commitFailure(rejection)
    }
    if ('error' in this.#answer) throw endedIfNone(commitFailure(this.#answer.error))
    if (this.#answer.tag !== commitText) {
      throw holdfastError('TX_ROLLED_BACK', { cause: rejection })
    }
    this.#assertSynced()
  }
}
