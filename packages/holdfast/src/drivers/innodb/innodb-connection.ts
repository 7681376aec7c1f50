import type { Executor, Row, Statement, TransactionSettings, Value } from '../../core/driver.ts'
import { endedInside } from '../../core/errors/ended-inside.ts'
import { leftOpen } from '../../core/errors/left-open.ts'
import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import { within } from '../../core/within.ts'
import {
  commitsEachAfter,
  type InnodbDriver,
  type InnodbTransaction,
  openAfter,
} from '../../engines/innodb/driver.ts'
import {
  isConnectionLoss,
  isInsideAlready,
  isMissingSavepoint,
  isReadOnly,
  wasNeverSent,
} from '../../engines/innodb/errno.ts'
import { bodyFailure, commitFailure, openingFailure } from '../../engines/innodb/failure.ts'
import { forgetServer, hasEnded, knownServer, serverOf } from '../../engines/innodb/server.ts'
import {
  beginText,
  cancelText,
  commitAloneText,
  commitText,
  nothing,
  openInOne,
  rollbackText,
  uncommittedText,
  wire,
} from '../../engines/innodb/tx/transaction.ts'
import { committing } from './innodb-commit.ts'
import { InnodbLeash } from './innodb-leash.ts'
import { takeAlone } from '../parts/sole-client.ts'

/** A connection of a pool, in words that `mysql2` and `mariadb` have in common. */
export interface InnodbConnection {
  /** The client's own object, by which a leash around it is known. */
  readonly native: object
  /** The same object each time the pool gives this connection out. */
  readonly sole: object
  /** How the server numbers it. */
  readonly id: number
  /** What all handles of the transaction on it have in common, where a transaction can have several. */
  readonly whole?: object | undefined
  send(text: string, values?: readonly Value[]): Promise<readonly Row[]>
  /** Has the server prepare a text without values, and gives what runs it. Absent where nothing is committed with it. */
  prepare?(text: string): Promise<() => Promise<unknown>>
  release(): Promise<void> | void
  /** Closes it, so that the server rolls back whatever is open on it. */
  destroy(): void
}

/** One that was taken for a transaction. */
export interface TakenConnection<Tx> extends InnodbConnection {
  /**
   * Runs a body with the caller's kind of handle over this connection, the leash around what that sends. Afterwards a
   * client that commits itself calls `commit` in its stead; else nobody has to.
   */
  within<T>(
    leash: InnodbLeash,
    use: (handle: Tx) => Promise<T>,
    commit: () => Promise<void>,
  ): Promise<T>
}

/** Takes a connection of the pool. */
export type TakeConnection<Connection extends InnodbConnection> = () => Promise<Connection>

/** Statements on their own, each on a connection of the pool. */
export function aloneOn(take: TakeConnection<InnodbConnection>): Executor {
  return {
    async query({ text, values, uncommitted = false }) {
      const connection = await taken(take)
      let clean = false
      let commits = false
      try {
        commits = await commitsEach(connection)
        // It counts for the next statement only, which is ours.
        if (uncommitted) await connection.send(uncommittedText)
        const rows = await connection.send(text, values)
        if (!commits) await connection.send(commitAloneText)
        else if (openAfter(rows) === true) throw leftOpen()
        clean = true
        return rows
      } catch (error) {
        clean = commits && !uncommitted && !isHoldfastError(error) && mayGoBack(error)
        throw error
      } finally {
        if (clean) await connection.release()
        else connection.destroy()
      }
    },
  }
}

/** Connections that were seen to commit each statement by itself. */
const committingEach = /* @__PURE__ */ new WeakSet<object>()

/**
 * Whether each statement is committed by itself: not where the pool has autocommit off.
 * @throws TX_SESSION_SHARED if a transaction is open: what we send would be saved or lost with it
 */
async function commitsEach({ sole, send }: InnodbConnection): Promise<boolean> {
  if (committingEach.has(sole)) return true
  const told = await send(nothing)
  if (openAfter(told) === true) throw leftOpen()
  if (!commitsEachAfter(told)) return false
  committingEach.add(sole)
  return true
}

function mayGoBack(error: unknown): boolean {
  return !isConnectionLoss(error) && !isReadOnly(error)
}

async function taken<Connection extends InnodbConnection>(
  take: TakeConnection<Connection>,
): Promise<Connection> {
  try {
    return await take()
  } catch (error) {
    throw openingFailure(error)
  }
}

/** What a transaction is run with. */
export interface Running<Tx> {
  readonly driver: InnodbDriver<Tx>
  readonly take: TakeConnection<TakenConnection<Tx>>
  /** The transaction on a connection that is ours until the end. */
  join(connection: InnodbConnection, native: Tx): InnodbTransaction<Tx>
}

/**
 * Begins, runs the body, looks whether the transaction is still the one that was begun, commits. The connection goes
 * back to the pool only when it is known to be as it was; in every other case it is destroyed.
 */
export async function runOnConnection<Tx, T>(
  { driver, take, join }: Running<Tx>,
  body: (transaction: InnodbTransaction<Tx>, opened?: Promise<readonly Row[]>) => Promise<T>,
  settings: TransactionSettings,
): Promise<T> {
  const connection = await taken(take)
  let free: (() => void) | undefined
  let clean = false
  try {
    free = takeAlone(connection.sole)
    settings.connected?.()
    const { isolation = 'read committed' } = settings
    const readsFresh = isolation === 'read committed'
    const leash = new InnodbLeash((error) => hasEnded(driver, error), readsFresh)
    const watched: InnodbConnection = {
      ...connection,
      async send(text, values) {
        const rows = await leash.during(() => connection.send(text, values))
        leash.hear(rows, knownServer(driver)?.dialect)
        return rows
      },
    }
    /** Rolls back, and says what has to be told. */
    const failed = async (thrown: unknown): Promise<unknown> => {
      leash.close()
      const error = leash.known(leash.ownIn(thrown))
      if (isReadOnly(error)) forgetServer(driver)
      const left = await leave(connection, leash)
      clean = left === 'whole'
      // What it had saved before has to be told, whatever became of the rest; also where nobody can be asked any more.
      const mayBeSaved = left === 'tripped' || (left === undefined && leash.isOpaque)
      if (mayBeSaved && !saysSo(error)) return endedInside('unknown', error)
      return bodyFailure(error, !clean && isConnectionLoss(error))
    }
    const { opened, commitAll } = await begin(driver, connection, watched, settings)
    const ended = async (): Promise<void> => {
      try {
        if (commitAll === undefined) await connection.send(wire.release)
      } catch (error) {
        throw await failed(error)
      }
      try {
        await (commitAll === undefined ? connection.send(commitText) : commitAll())
      } catch (error) {
        const isBefore = isMissingSavepoint(error) || wasNeverSent(error)
        throw isBefore ? await failed(error) : commitFailure(error)
      }
      clean = true
    }
    let ending: Promise<void> | undefined
    /** Looks whether it is still the transaction that was begun, and commits it; once, whoever asks. */
    const commit = (): Promise<void> => (ending ??= heard(ended()))
    const use = async (native: Tx): Promise<T> => {
      const given = await body(join(watched, native), opened)
      await turn()
      leash.end()
      return given
    }
    let result: T
    try {
      result = await connection.within(leash, use, commit)
    } catch (error) {
      if (ending === undefined) throw await failed(error)
      await ending
      const subject = 'the client failed after COMMIT was sent'
      throw holdfastError('COMMIT_UNKNOWN', { details: { subject }, cause: error })
    }
    await commit()
    return result
  } finally {
    free?.()
    if (clean) await connection.release()
    else connection.destroy()
  }
}

/** Statements that a body has started without awaiting them reach the connection within this turn. */
async function turn(): Promise<void> {
  await new Promise<void>((resolve) => {
    process.nextTick(resolve)
  })
}

/** One that was refused, or never begun, says that nothing is saved. */
function saysSo(error: unknown): boolean {
  if (isHoldfastError(error, 'TX_SESSION_SHARED')) return true
  return isHoldfastError(error, 'TX_ENDED_INSIDE') && error.details.ended !== 'refused'
}

interface Begun {
  /** What the first statement was answered with; it is sent, and not waited for. */
  readonly opened: Promise<readonly Row[]> | undefined
  /** Looks for the tripwire and commits, where the server takes several statements as one. */
  readonly commitAll: (() => Promise<unknown>) | undefined
}

/** @throws TX_SESSION_SHARED; those of `serverOf` */
async function begin<Tx>(
  driver: InnodbDriver<Tx>,
  connection: InnodbConnection,
  watched: InnodbConnection,
  { isolation, opening }: TransactionSettings,
): Promise<Begun> {
  try {
    const facts = await serverOf(driver, executorOf(connection))
    const commitAll = facts.dialect === 'mariadb' ? await committing(connection) : undefined
    const first = opening?.()
    if (commitAll !== undefined) {
      const { text, values } = openInOne(isolation, first)
      const opened = watched.send(text, values)
      if (first !== undefined) return { opened: heard(opened.catch(named)), commitAll }
      await opened
      return { opened: undefined, commitAll }
    }
    for (const text of [beginText(isolation), wire.set]) await watched.send(text)
    return { opened: first && heard(watched.send(first.text, first.values)), commitAll }
  } catch (error) {
    return named(openingFailure(error))
  }
}

/** Whoever waits for it hears of its failure; nobody has to. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

function named(error: unknown): never {
  throw isInsideAlready(error) ? leftOpen(error) : error
}

function executorOf(connection: InnodbConnection): Executor {
  return { query: ({ text, values }: Statement) => connection.send(text, values) }
}

/** What a body has left behind may be under way for ever; then only the end of the connection rolls back. */
const rollbackMs = 1_000

/**
 * Rolls back, and says what there was to be rolled back: the whole transaction, or only what came after something that
 * has ended it. Nothing if there was no answer: the connection ends, and its transaction with it.
 */
async function leave(
  connection: InnodbConnection,
  leash: InnodbLeash,
): Promise<'whole' | 'tripped' | undefined> {
  const look = async (): Promise<'whole' | 'tripped'> => {
    let tripped = false
    try {
      if (!leash.isRolledBack) await connection.send(wire.release)
    } catch (error) {
      if (!isMissingSavepoint(error)) throw error
      tripped = true
    }
    await connection.send(rollbackText)
    if (!(await isAsItWas(connection))) throw holdfastError('CONNECTION_LOST')
    return tripped ? 'tripped' : 'whole'
  }
  return await within(look(), rollbackMs)
}

/** When nothing is open any more. */
async function isAsItWas(connection: InnodbConnection): Promise<boolean> {
  try {
    await connection.send(commitText)
    return true
  } catch {
    return false
  }
}

/** How long a request to end a statement may wait for a connection, before this one is given up. */
const cancelMs = 250

/**
 * Has the server end what this connection is running. Where the pool has no connection left to ask with, the connection
 * itself is ended: the server notices when the statement's turn comes, and rolls back.
 */
export async function cancelOn(
  { id, destroy }: Pick<InnodbConnection, 'id' | 'destroy'>,
  alone: Executor,
): Promise<void> {
  const asked = alone.query({ text: cancelText(id), values: [] }).then(
    () => true,
    () => false,
  )
  if ((await within(asked, cancelMs)) !== true) destroy()
}
