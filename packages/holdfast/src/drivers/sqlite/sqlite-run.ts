import type { Row, Statement, TransactionSettings, TransactionState } from '../../core/driver.ts'
import { holdfastError, isHoldfastError } from '../../core/errors.ts'
import { processWide } from '../../core/process-wide.ts'
import type { SqliteDriver, SqliteTransaction, WriterTerms } from '../../engines/sqlite/driver.ts'
import { unfit } from '../../engines/sqlite/file-fit.ts'
import {
  isBusy,
  isInsideAlready,
  isReadOnly,
  keptNothing,
} from '../../engines/sqlite/result-code.ts'
import { withSavepoint } from '../../engines/sqlite/tx/savepoint.ts'
import {
  beginText,
  commitText,
  mayWrite,
  rollbackText,
  userVersion,
} from '../../engines/sqlite/tx/transaction.ts'
import type { Turn } from '../../engines/sqlite/tx/writer.ts'
import type { SqliteConnection, SqliteConnections } from './sqlite-connection.ts'
import { SqliteLeash } from './sqlite-leash.ts'

/** How long the right to write is waited for where nothing else says so. */
const defaultLimitMs = 10_000

/** What a transaction has from its BEGIN on. */
interface Begun<Tx> {
  readonly turn: Turn
  readonly connection: SqliteConnection<Tx>
  readonly leash: SqliteLeash
  readonly native: Tx
}

/** Handles of bodies: what they look like when they are over says the connection, which may be somebody else's by then. */
const own = /* @__PURE__ */ processWide(
  'sqlite-own/1',
  () => new WeakMap<object, SqliteTransaction<never>>(),
)

/** The transaction of ours that a body was given with this handle. */
export function ownTransaction<Tx extends object>(native: Tx): SqliteTransaction<Tx> | undefined {
  return own.get(native) as SqliteTransaction<Tx> | undefined
}

/** One transaction of ours. It takes a connection, and begins, when nobody else writes. */
class OwnTransaction<Tx extends object> implements SqliteTransaction<Tx> {
  readonly isOurs = true
  readonly budgetMs = undefined
  readonly #connections: SqliteConnections<Tx>
  readonly #wanted: (() => void) | undefined
  readonly #given = new AbortController()
  #begun: Begun<Tx> | undefined

  /** `wanted` throws when nobody waits for it any more. */
  constructor(connections: SqliteConnections<Tx>, wanted: (() => void) | undefined) {
    this.#connections = connections
    this.#wanted = wanted
  }

  get begun(): Begun<Tx> | undefined {
    return this.#begun
  }

  get native(): Tx {
    return this.#open.native
  }

  get #open(): Begun<Tx> {
    if (this.#begun === undefined) throw new Error('a transaction was used before it had begun')
    return this.#begun
  }

  state(): TransactionState {
    if (this.#begun === undefined) return 'unknown'
    const { leash, connection } = this.#begun
    return !leash.isOver && connection.isOpen && connection.isTransaction ? 'open' : 'none'
  }

  async takeWriter({ attempt, limitMs, names }: WriterTerms): Promise<void> {
    if (this.#begun !== undefined) return
    const { signal } = this.#given
    const began = performance.now()
    const { writer } = this.#connections
    const turn = await writer.turn(names, { attempt, limitMs, signal })
    try {
      const connection = this.#connections.take()
      const leash = new SqliteLeash(() => connection.isOpen && connection.isTransaction)
      try {
        const leftMs = limitMs === undefined ? undefined : limitMs - (performance.now() - began)
        const limits = { attempt, limitMs: leftMs, signal }
        const ask = (): void => {
          this.#wanted?.()
          connection.run(beginText)
        }
        await writer.untilFree(ask, limits)
        assertWrites(connection)
        turn.writes = true
        const native = connection.leashed(leash)
        await connection.assertHeld?.(native, leash)
        this.#begun = { turn, connection, leash, native }
      } catch (error) {
        if (isInsideAlready(error)) throw holdfastError('TX_SESSION_SHARED', { cause: error })
        this.#connections.giveBack(connection)
        throw error
      }
      own.set(this.#begun.native, this as unknown as SqliteTransaction<never>)
    } catch (error) {
      turn.end()
      throw error
    }
  }

  /** Nothing runs on while we wait: only the wait for the right to write can be ended. */
  cancel = async (): Promise<void> => {
    this.#given.abort(new Error('the wait was ended'))
  }

  async query({ text, values }: Statement): Promise<readonly Row[]> {
    const { leash, connection } = this.#open
    return leash.during(() => connection.send(text, values))
  }

  async command(text: string): Promise<void> {
    await this.query({ text, values: [] })
  }

  async nested<T>(body: (inner: SqliteTransaction<Tx>) => Promise<T>): Promise<T> {
    // Before it has begun there is nothing to be kept.
    if (this.#begun === undefined) return await body(this)
    return await withSavepoint(this, async () => await body(this))
  }
}

/**
 * Waits for the right to write, begins, runs the body, looks whether the transaction is still there, commits. Resolves
 * only if SQLite has committed.
 */
export async function runOnSqlite<Tx extends object, T>(
  driver: SqliteDriver<Tx>,
  connections: SqliteConnections<Tx>,
  body: (transaction: SqliteTransaction<Tx>) => Promise<T>,
  { bodyWaits = false, connectWithinMs, connected }: TransactionSettings,
): Promise<T> {
  const transaction = new OwnTransaction(connections, connected)
  if (!bodyWaits) {
    const limitMs = connectWithinMs ?? defaultLimitMs
    await beginning(driver, transaction, limitMs)
  }
  let committed = false
  try {
    const result = await body(transaction)
    const { begun } = transaction
    if (begun === undefined) return result
    begun.leash.end()
    connections.assertSameFile(begun.connection)
    commit(begun.connection)
    committed = true
    return result
  } catch (error) {
    throw transaction.begun?.leash.failed(error) ?? error
  } finally {
    if (transaction.begun !== undefined) end(connections, transaction.begun, committed)
  }
}

/** Connections that were seen to write. */
const writing = /* @__PURE__ */ new WeakSet<object>()

/**
 * On a connection that was opened for reading only, BEGIN IMMEDIATE succeeds and locks nothing. What would write fails
 * there, and changes nothing elsewhere. @throws what `isReadOnly` knows
 */
function assertWrites<Tx extends object>(connection: SqliteConnection<Tx>): void {
  if (writing.has(connection)) return
  try {
    for (const text of mayWrite(connection.send(userVersion))) connection.send(text)
  } catch (error) {
    if (connection.isTransaction) connection.send(rollbackText)
    throw error
  }
  writing.add(connection)
}

/** @throws LOCK_TIMEOUT, ENGINE_FILE_UNFIT */
async function beginning<Tx extends object>(
  driver: SqliteDriver<Tx>,
  transaction: OwnTransaction<Tx>,
  limitMs: number,
): Promise<void> {
  try {
    await transaction.takeWriter({ attempt: false, limitMs, names: [] })
  } catch (error) {
    if (isReadOnly(error)) throw unfit('the connection may only read', error)
    if (!isBusy(error)) throw error
    const subject = 'the right to write to the file'
    const details = { subject, names: [], endedBy: 'wait' } as const
    const blockers = driver.writer().holders()
    throw holdfastError('LOCK_TIMEOUT', { cause: error, details, blockers })
  }
}

function commit<Tx>(connection: SqliteConnection<Tx>): void {
  try {
    connection.run(commitText)
  } catch (error) {
    if (isHoldfastError(error) || keptNothing(error)) throw error
    // A disk that fails while it is written to: what of it is there, the next one who opens the file finds out.
    throw holdfastError('COMMIT_UNKNOWN', { cause: error })
  }
}

/** Rolls back what was not committed. What is not known to be as it was is closed, which rolls back as well. */
function end<Tx extends object>(
  connections: SqliteConnections<Tx>,
  { connection, leash, turn }: Begun<Tx>,
  committed: boolean,
): void {
  leash.close()
  try {
    if (!committed && connection.isOpen && connection.isTransaction) connection.run(rollbackText)
    // A table in memory that hides one of the file, or a setting of the whole connection, is not for the next body.
    if (leash.leavesMore) connection.close()
    else connections.giveBack(connection)
  } catch {
    connection.close()
  } finally {
    turn.end()
  }
}
