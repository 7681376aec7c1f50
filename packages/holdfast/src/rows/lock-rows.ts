import type { CallSite } from '../core/call-site.ts'
import type { Driver, Row, Statement, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import type { WaitTerms } from '../core/wait.ts'
import {
  rowLockHolders,
  rowShareHolders,
  tableLockHolders,
} from '../engines/postgres/rows/row-blockers.ts'
import {
  type RowAnswer,
  type RowStrength,
  type RowTarget,
  modeOf,
  readKeys,
  rowAnswer,
  rowLockStatement,
} from '../engines/postgres/rows/rows.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import { displayName, keyFields, type KeyOptions, type RowKey } from './row-key.ts'
import { askBeside } from './contention.ts'
import { LimitedWait } from './limited-wait.ts'
import { watchRowOrder } from './row-order.ts'
import type { RowWait } from './row-wait.ts'

/** How rows are locked. */
export interface LockRowsOptions extends KeyOptions {
  /**
   * `no key update` suits every change that leaves the key alone, and lets others insert rows that
   * refer to this one; `update` is for deleting it or changing its key. @defaultValue 'no key update'
   */
  readonly strength?: RowStrength
  /** What to do if somebody else has a row. @defaultValue '2 s', or what `createHoldfast` was given */
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
  /**
   * The rows as they are now that they are locked, one for each key given and in that order: two equal keys
   * are locked once and give the same row twice.
   */
  readonly rows: readonly R[]
  /**
   * Keys without a row that this role may lock: there is none, or a policy keeps it from being changed, which PostgreSQL
   * does not tell. Nothing is locked for them: others may insert such a row at any time.
   */
  readonly missing: readonly K[]
  /**
   * Keys whose row is there and was passed over; only with `wait: 'skip'`. Others had locked it, or a policy lets this role
   * see and not change it, which PostgreSQL does not tell apart.
   */
  readonly skipped: readonly K[]
}

const patience = { wait: 'wait', skip: 'skip', nowait: 'fail' } as const

/** SAVEPOINT outside a transaction. */
const noTransaction = '25P01'

/** One call of `rows.lock`, its options resolved. */
export interface RowLockCall {
  readonly target: RowTarget
  readonly keys: readonly RowKey[]
  readonly strength: RowStrength
  readonly wait: WaitTerms
  readonly columns: readonly string[] | undefined
  readonly versionColumn: string | undefined
  readonly keepTransaction: boolean
  /** Where the rows were asked for. */
  readonly site: CallSite
}

/** Locks rows in a transaction and says what became of each row, in the order of the keys. */
export async function lockRows<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: RowLockCall,
): Promise<readonly RowAnswer[]> {
  const subject = displayName(call.target.table)
  assertMaybeOpen(transaction, subject)
  const keysJson = JSON.stringify(call.keys.map((key) => keyFields(key, call.target)))
  if (call.keys.length === 0) return []
  const { strength, columns, versionColumn } = call
  const target = await withOperators(driver, transaction, call.target)
  const waiting = new LimitedWait(driver, transaction, {
    table: target.table,
    wait: call.wait,
    does: 'lock',
  })
  const take = async (inner: Transaction<Tx>): Promise<readonly Row[]> =>
    await waiting.query(inner, (unsure) =>
      rowLockStatement({
        target,
        keysJson,
        keyCount: call.keys.length,
        strength,
        patience: patience[call.wait.how],
        columns,
        versionColumn,
        unsure,
      }),
    )
  const began = performance.now()
  let rows: readonly Row[]
  try {
    rows = call.keepTransaction ? await transaction.nested(take) : await take(transaction)
  } catch (error) {
    const failure = await waiting.failure(
      error,
      [
        (waiter) => tableLockHolders(target.table, 'row share', waiter),
        (waiter) => rowLockHolders(target, keysJson, waiter),
        (waiter) => rowShareHolders(target, keysJson, strength, waiter),
      ],
      call.keepTransaction ? transaction : undefined,
    )
    throw await named(driver, failure, subject, readKeys(target, keysJson))
  }
  const answers = rows.map(rowAnswer)
  if (new Set(answers.map(({ positions }) => positions[0])).size < answers.length) {
    throw holdfastError('ROWS_KEY_INVALID', {
      details: { subject: `${subject}: the key columns do not identify one row` },
    })
  }
  if (answers.some(({ locked }) => locked)) {
    const waits = call.wait.how === 'wait'
    const { table } = call.target
    const { site } = call
    watchRowOrder(driver, rows[0]?.['#marked'], { table, mode: modeOf(call.strength), waits, site })
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

/** Throws if the client knows that there is no transaction; otherwise the server has the word. */
export function assertMaybeOpen<Tx>(transaction: Transaction<Tx>, subject: string): void {
  if (transaction.state() === 'none') {
    throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject } })
  }
}

async function named<Tx>(
  driver: Driver<Tx>,
  error: unknown,
  subject: string,
  reading: Statement,
): Promise<unknown> {
  const state = sqlStateOf(error)
  if (state === noTransaction) {
    return holdfastError('ROWS_OUTSIDE_TRANSACTION', { cause: error, details: { subject } })
  }
  // Class 22: the server could not read a key as the type of its column, if it cannot read it by itself either. Otherwise
  // something else of the table failed, such as a policy.
  if (state?.startsWith('22') !== true) return error
  const isReadable = await askBeside(driver, async (transaction) => transaction.query(reading))
  if (isReadable === undefined) {
    return holdfastError('ROWS_KEY_INVALID', { cause: error, details: { subject } })
  }
  return error
}
