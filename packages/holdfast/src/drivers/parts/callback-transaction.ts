import {
  bodyFailure,
  commitFailure,
  openingFailure,
  rolledBack,
} from '../../core/errors/commit-failure.ts'
import type { Transaction } from '../../core/driver.ts'
import { type Ended, endedInside } from '../../core/errors/ended-inside.ts'
import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import { isConnectionLoss, sqlStateOf } from '../../core/sql-state.ts'
import {
  commitText,
  endProbe,
  markerProbe,
  rolledBackTag,
} from '../../engines/postgres/tx/transaction.ts'
import { endedIfNone, Leash } from './leash.ts'
import type { ConnectionWatch } from '../pg/pg-connection.ts'
import { takeAlone } from './sole-client.ts'
import { hearing } from './sync-wait.ts'
import { isTrue } from '../../core/is-true.ts'

/** A transaction of a client that runs a callback and commits if it resolves. */
export interface CallbackTransaction<Tx, T> {
  /** Opens it, by the client's own call. */
  open(callback: (native: Tx) => Promise<void>): Promise<unknown>
  join(native: Tx): Transaction<Tx>
  body(transaction: Transaction<Tx>): Promise<T>
  /** After a failed COMMIT the client sends ROLLBACK, and reports the failure of that instead. */
  readonly masksCommit: boolean
  /** COMMIT does not pass the leash. @defaultValue false */
  readonly hidesCommit?: boolean
  /** The first statement of the body sets the marker, so that it can be looked for in the end. */
  readonly marked: boolean
  /** Watches the `pg` connection beneath the client, where that can be reached. */
  watch?(native: Tx): ConnectionWatch | undefined
  /** Puts what the body sends on the leash. */
  hold(native: Tx, leash: Leash): Held<Tx> | Promise<Held<Tx>>
  /** What an error of the client says about a transaction that the client itself has ended too early. */
  endedBy?(error: unknown): Ended | undefined
  /** See `Leash`. @defaultValue true */
  readonly strict?: boolean
}

/** A handle on the leash. */
export interface Held<Tx> {
  readonly native: Tx
  /** The connection, where it can be reached: it is to have one transaction at a time. */
  readonly sole?: object
  /** Whether the client knows of statements under way, if the leash does not count them. */
  busy?(): boolean
  /**
   * The body has returned: waits for what it has left behind in the client, and puts the client's own state
   * right. @throws TX_NESTED if the body left a transaction of its own open
   */
  settle?(): Promise<void> | void
  /**
   * Waits until nothing is under way, for a while; then gives that up, by ending the connection if need be, and says
   * that nothing can be sent with the handle any more: false.
   */
  rest?(): Promise<boolean>
  /** Called when the transaction is over. */
  free?(): void
}

type Stage = 'opening' | 'body' | 'committing'

/**
 * Runs the body in a client's own transaction and resolves only if PostgreSQL committed. The error
 * the body threw wins over what the client makes of it.
 */
export async function runInCallback<Tx, T>(how: CallbackTransaction<Tx, T>): Promise<T> {
  const leash = new Leash(how.strict)
  let stage = 'opening' as Stage
  let done = undefined as { readonly result: T } | undefined
  let failure = undefined as { readonly error: unknown } | undefined
  let connection = undefined as ConnectionWatch | undefined
  let held = undefined as Held<Tx> | undefined
  let assertSynced = (): void => undefined
  let free = undefined as (() => void) | undefined
  try {
    await how.open(async (native) => {
      stage = 'body'
      connection = how.watch?.(native)
      const transaction = how.join(native)
      try {
        held = await how.hold(native, leash)
        if (held.sole !== undefined) free = takeAlone(held.sole)
        if (connection !== undefined) connection.leash = leash
        done = { result: await how.body({ ...transaction, native: held.native }) }
        await turn()
        await connection?.answered()
        leash.end(held.busy?.(), transaction.state() === 'failed')
        await held.settle?.()
        if (connection?.lost === true) throw holdfastError('CONNECTION_LOST')
        await assertUsable(how, transaction, connection)
      } catch (error) {
        failure = { error: leash.failed(bodyFailure(error, false)) }
        await settled(held)
        // Whatever is sent from here on would wait behind what the body has left open.
        if (connection?.lost !== true && (await held?.rest?.()) === false) throw error
        const lost =
          connection?.lost === true || (isConnectionLoss(error) && (await isGone(transaction)))
        // What has no session of its own is told as that, and not by what another one made of it.
        const ended =
          lost || isHoldfastError(error, 'TX_SESSION_SHARED')
            ? undefined
            : await endedMeanwhile(how, transaction, connection)
        failure = { error: leash.failed(ended ?? bodyFailure(error, lost)) }
        throw error
      } finally {
        leash.handOver()
        // Before the client ends it: afterwards the pool may have given the connection to the next one already.
        free?.()
      }
      stage = 'committing'
      connection?.committing()
      assertSynced = (): void => connection?.assertSynced()
      if (connection === undefined) assertSynced = hearing()
    })
  } catch (error) {
    if (stage === 'committing')
      throw endedByClient(how, error) ?? afterCommit(how, error, leash, connection)
    if (failure !== undefined) throw failure.error
    throw openingFailure(error)
  } finally {
    leash.close()
    held?.free?.()
    connection?.stop()
  }
  if (connection?.committedNothing === true) throw endedInside('unknown')
  if (connection?.ending === rolledBackTag) throw holdfastError('TX_ROLLED_BACK')
  if (done === undefined) throw holdfastError('DRIVER_HANDLE_INVALID')
  assertSynced()
  return done.result
}

/**
 * What a client's error means once the body was over. Only an answer of the server says that COMMIT failed: a
 * subscriber or a logger may throw after it, whatever its error looks like.
 */
function afterCommit<Tx>(
  { masksCommit, hidesCommit = false }: CallbackTransaction<Tx, unknown>,
  error: unknown,
  leash: Leash,
  connection: ConnectionWatch | undefined,
): unknown {
  const subject = 'the client failed after COMMIT was sent'
  const unknown = (): Error =>
    holdfastError('COMMIT_UNKNOWN', { details: { subject }, cause: error })
  if (connection?.ending === commitText) return unknown()
  const named = commitFailure(error, masksCommit)
  const sent = hidesCommit || leash.ending
  const answered = isHoldfastError(named) || sqlStateOf(error) !== undefined
  return sent && !answered ? unknown() : named
}

/** Statements that a body has started without awaiting them reach the connection within this turn. */
async function turn(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.nextTick(resolve)
  })
}

/**
 * COMMIT of an aborted block is a rollback, and COMMIT of no block is nothing; the client would report
 * both as success. Where the connection is watched, COMMIT's own command tag tells; elsewhere only a
 * statement does.
 */
async function assertUsable<Tx>(
  how: Pick<CallbackTransaction<Tx, unknown>, 'marked' | 'endedBy'>,
  transaction: Transaction<Tx>,
  connection: ConnectionWatch | undefined,
): Promise<void> {
  const state = transaction.state()
  if (state === 'failed') throw holdfastError('TX_ROLLED_BACK')
  if (state === 'none') throw endedInside('unknown')
  if (connection?.seesTags === true) return
  try {
    if (!how.marked) await transaction.command(endProbe)
    else if (!isTrue((await transaction.query(markerProbe))[0]?.['usable']))
      throw endedInside('unknown')
  } catch (error) {
    throw endedByClient(how, error) ?? endedIfNone(rolledBack(error))
  }
}

function endedByClient(
  how: Pick<CallbackTransaction<never, unknown>, 'endedBy'>,
  error: unknown,
): Error | undefined {
  const ended = how.endedBy?.(error)
  if (ended === undefined) return undefined
  // A client rolls back by itself where a statement has failed.
  if (ended === 'rolled back') return holdfastError('TX_ROLLED_BACK', { cause: error })
  return endedInside(ended, error)
}

/** What the body has left behind is of no interest any more, unless it has to be told. */
async function settled<Tx>(held: Held<Tx> | undefined): Promise<void> {
  try {
    await held?.settle?.()
  } catch {
    // The body's own error is told.
  }
}

/**
 * Whether a transaction that is given up was ended before, so that a part of it is saved. Not by the marker: the
 * body may have failed before it was set.
 */
async function endedMeanwhile<Tx>(
  how: Pick<CallbackTransaction<Tx, unknown>, 'endedBy'>,
  transaction: Transaction<Tx>,
  connection: ConnectionWatch | undefined,
): Promise<Error | undefined> {
  try {
    await assertUsable({ ...how, marked: false }, transaction, connection)
  } catch (error) {
    if (isHoldfastError(error, 'TX_ENDED_INSIDE')) return error
  }
  return undefined
}

/** Tells our broken connection from one that the body opened to somewhere else. */
async function isGone<Tx>(transaction: Transaction<Tx>): Promise<boolean> {
  try {
    await transaction.query(markerProbe)
    return false
  } catch (error) {
    return isConnectionLoss(error)
  }
}
