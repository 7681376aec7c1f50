import type { Driver, Row, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import {
  rowLockHolders,
  rowShareHolders,
  tableLockHolders,
} from '../engines/postgres/row-blockers.ts'
import {
  type RowAnswer,
  type RowPatience,
  type RowStrength,
  type RowTarget,
  rowAnswer,
  rowLockStatement,
} from '../engines/postgres/rows.ts'
import {
  isInTransaction,
  limitWait,
  type WaitLimit,
  waitLimitFrom,
} from '../engines/postgres/wait-limit.ts'
import { contention } from './contention.ts'
import { displayName, keyFields, type KeyOptions, type RowKey } from './row-key.ts'
import type { RowWait } from './row-wait.ts'

/** How rows are locked. */
export interface LockRowsOptions extends KeyOptions {
  /**
   * `no key update` suits every change that leaves the key alone, and lets others insert rows that
   * refer to this one; `update` is for deleting it or changing its key. @defaultValue 'no key update'
   */
  readonly strength?: RowStrength
  /** @defaultValue the room's `wait`, which is 'block' unless it was set */
  readonly wait?: RowWait
  /** Throw ROWS_MISSING unless every key was locked. @defaultValue false */
  readonly expectAll?: boolean
  /** Columns to return. Name them where the client cannot read all. @defaultValue all */
  readonly columns?: readonly string[]
  /**
   * Keep the transaction usable after a timeout or a busy row, by a savepoint (two more round
   * trips). @defaultValue false
   */
  readonly keepTransaction?: boolean
}

/** What was locked and what was not. */
export interface LockedRows<R, K> {
  /** The rows as they are now that they are locked, in the order of the keys given. */
  readonly rows: readonly R[]
  /** Keys without a row. Nothing is locked for them: others may insert such a row at any time. */
  readonly missing: readonly K[]
  /** Keys whose row others had locked; only with `wait: 'skip'`. */
  readonly skipped: readonly K[]
}

const lockNotAvailable = '55P03'
const queryCanceled = '57014'
/** SAVEPOINT outside a transaction. */
const noTransaction = '25P01'

/** One call of `rows.lock`, its options resolved. */
export interface RowLockCall {
  readonly target: RowTarget
  readonly keys: readonly RowKey[]
  readonly strength: RowStrength
  readonly wait: RowWait
  readonly columns: readonly string[] | undefined
  readonly versionColumn: string | undefined
  readonly keepTransaction: boolean
}

/** Locks rows in a transaction and says what became of each key, in the order of the keys. */
export async function lockRows<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: RowLockCall,
): Promise<readonly RowAnswer[]> {
  const subject = displayName(call.target.table)
  assertMaybeOpen(transaction, subject)
  const keysJson = JSON.stringify(call.keys.map((key) => keyFields(key, call.target)))
  if (call.keys.length === 0) return []
  const taking = new Taking(call, keysJson, transaction)
  const began = performance.now()
  let rows: readonly Row[]
  try {
    rows = call.keepTransaction
      ? await transaction.nested((inner) => taking.run(inner))
      : await taking.run(transaction)
  } catch (error) {
    const code = taking.refusal(error)
    if (code === undefined) throw named(error, subject)
    throw await contention(driver, {
      code,
      cause: error,
      subject,
      waitMs: performance.now() - began,
      usable: call.keepTransaction ? transaction : undefined,
      questions: [
        tableLockHolders(call.target.table, 'row share'),
        rowLockHolders(call.target, keysJson),
        rowShareHolders(call.target, keysJson),
      ],
    })
  }
  const answers = rows.map(rowAnswer)
  if (new Set(answers.map(({ position }) => position)).size < answers.length) {
    throw holdfastError('ROWS_KEY_INVALID', {
      details: { subject: `${subject}: the key columns do not identify one row` },
    })
  }
  if (channels.rowsLocked.hasSubscribers) tellLocked(subject, call, answers, began)
  return answers
}

function tellLocked(
  table: string,
  { strength }: RowLockCall,
  answers: readonly RowAnswer[],
  began: number,
): void {
  const locked = answers.filter((answer) => answer.locked).length
  const missing = answers.filter((answer) => !answer.locked && !answer.there).length
  const skipped = answers.length - locked - missing
  const waitMs = performance.now() - began
  channels.rowsLocked.publish({ table, strength, locked, missing, skipped, waitMs })
}

/** The statements of one call, and how to read their failure. */
class Taking {
  readonly #call: RowLockCall
  readonly #keysJson: string
  /** Of the caller's transaction; the one inside a savepoint need not know. */
  readonly #budgetMs: number | undefined
  readonly #unsure: boolean
  #limit: WaitLimit | undefined
  #began = 0

  constructor(call: RowLockCall, keysJson: string, within: Transaction<unknown>) {
    this.#call = call
    this.#keysJson = keysJson
    this.#budgetMs = within.budgetMs
    this.#unsure = within.state() === 'unknown'
  }

  async run<Tx>(transaction: Transaction<Tx>): Promise<readonly Row[]> {
    const { target, strength, columns, versionColumn } = this.#call
    const unsure = this.#unsure
    this.#limit = await this.#limited(transaction)
    // Outside a transaction the limit is not in force, and the wait would be without end.
    if (unsure && this.#limit !== undefined)
      await assertOpen(transaction, displayName(target.table))
    this.#began = performance.now()
    const rows = await transaction.query(
      rowLockStatement({
        target,
        keysJson: this.#keysJson,
        keyCount: this.#call.keys.length,
        strength,
        patience: patience(this.#call.wait),
        columns,
        versionColumn,
        restore: this.#limit,
      }),
    )
    if (unsure && this.#limit === undefined)
      await assertOpen(transaction, displayName(target.table))
    return rows
  }

  /** One more round trip, only where waiting is limited by the call or by the client's timer. */
  async #limited<Tx>(transaction: Transaction<Tx>): Promise<WaitLimit | undefined> {
    const { wait } = this.#call
    const budgetMs = this.#budgetMs
    const limitMs = typeof wait === 'number' ? wait : undefined
    if (limitMs === undefined && (wait !== 'block' || budgetMs === undefined)) return undefined
    return waitLimitFrom(await transaction.query(limitWait({ limitMs, budgetMs })))
  }

  /** A canceled statement is a timeout of ours only if our timer was set and has run out. */
  refusal(error: unknown): 'ROWS_TIMEOUT' | 'ROWS_BUSY' | undefined {
    const state = sqlStateOf(error)
    if (state === lockNotAvailable) {
      return this.#call.wait === 'nowait' ? 'ROWS_BUSY' : 'ROWS_TIMEOUT'
    }
    if (state !== queryCanceled || this.#limit?.ours !== true) return undefined
    const elapsedMs = performance.now() - this.#began
    return elapsedMs >= this.#limit.limitMs ? 'ROWS_TIMEOUT' : undefined
  }
}

function patience(wait: RowWait): RowPatience {
  if (wait === 'skip') return 'skip'
  return wait === 'nowait' ? 'fail' : 'wait'
}

/** Throws if the client knows that there is no transaction; otherwise the server has the word. */
export function assertMaybeOpen<Tx>(transaction: Transaction<Tx>, subject: string): void {
  if (transaction.state() === 'none') {
    throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject } })
  }
}

/** In autocommit the marker, like the lock, was gone as soon as the statement ended. */
async function assertOpen<Tx>(transaction: Transaction<Tx>, subject: string): Promise<void> {
  const [row] = await transaction.query(isInTransaction)
  if (row?.['open'] !== true) {
    throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject } })
  }
}

function named(error: unknown, subject: string): unknown {
  const state = sqlStateOf(error)
  if (state === noTransaction) {
    return holdfastError('ROWS_OUTSIDE_TRANSACTION', { cause: error, details: { subject } })
  }
  // Class 22: the server could not read a key as the type of its column.
  if (state?.startsWith('22') === true) {
    return holdfastError('ROWS_KEY_INVALID', { cause: error, details: { subject } })
  }
  return error
}
