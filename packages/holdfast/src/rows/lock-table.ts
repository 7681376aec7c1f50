import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import type { WaitTerms } from '../core/wait.ts'
import type { TableName } from '../engines/postgres/sql/identifier.ts'
import { tableLockHolders } from '../engines/postgres/rows/row-blockers.ts'
import { lockTableText, type TableLockMode } from '../engines/postgres/rows/table-lock.ts'
import {
  limitWait,
  restoreTimeouts,
  showIsolation,
  showLockTimeout,
  shown,
  showStatementTimeout,
  utilityLimit,
  type WaitLimit,
  waitLimitFrom,
} from '../engines/postgres/tx/wait-limit.ts'
import { contention } from './contention.ts'
import { notGranted, waiterOf } from './limited-wait.ts'
import { assertMaybeOpen } from './lock-rows.ts'
import { displayName } from './row-key.ts'
import type { TableWait } from './row-wait.ts'

/** How a table is locked. */
export interface LockTableOptions {
  /** What to do if somebody else has it. @defaultValue '2 s', or what `createHoldfast` was given */
  readonly wait?: TableWait
  /** Keep the transaction usable if the table is not granted, by a savepoint. @defaultValue false */
  readonly keepTransaction?: boolean
}

/** One call of `rows.lockTable`, its options resolved. */
export interface TableLockCall {
  readonly table: TableName
  readonly mode: TableLockMode
  readonly wait: WaitTerms
  readonly keepTransaction: boolean
}

/**
 * Locks a whole table, by utility statements only: none of them takes a snapshot, so a REPEATABLE
 * READ transaction that begins with this reads what was committed while it waited.
 */
export async function lockTable<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: TableLockCall,
): Promise<void> {
  const subject = displayName(call.table)
  assertMaybeOpen(transaction, subject)
  const progress: Progress = { budgetMs: transaction.budgetMs, limit: undefined, began: 0 }
  const began = performance.now()
  try {
    if (call.keepTransaction) await transaction.nested((inner) => take(inner, call, progress))
    else await take(transaction, call, progress)
  } catch (error) {
    if (sqlStateOf(error) === '25P01') {
      throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { cause: error, details: { subject } })
    }
    const refused = notGranted(
      error,
      { wait: call.wait, does: 'lock' },
      progress.limit,
      progress.began,
    )
    if (refused === undefined) throw error
    throw await contention(driver, {
      ...refused,
      cause: error,
      subject,
      called: began,
      waiter: waiterOf(error, progress.limit, call.table),
      usable: call.keepTransaction ? transaction : undefined,
      questions: [(waiter) => tableLockHolders(call.table, call.mode, waiter, false)],
    })
  }
  if (channels.rowsTableLocked.hasSubscribers) {
    const waitMs = performance.now() - began
    channels.rowsTableLocked.publish({ table: subject, mode: call.mode, waitMs })
  }
}

interface Progress {
  /** Of the caller's transaction; the one inside a savepoint need not know. */
  readonly budgetMs: number | undefined
  limit: WaitLimit | undefined
  began: number
}

async function take<Tx>(
  transaction: Transaction<Tx>,
  { table, mode, wait }: TableLockCall,
  progress: Progress,
): Promise<void> {
  const text = lockTableText(table, mode, wait.how === 'nowait')
  if (wait.how === 'nowait') {
    await transaction.command(text)
    return
  }
  const request = { ...wait, budgetMs: progress.budgetMs }
  // Here a SELECT takes no snapshot that lasts, so that it may set the limit, and ask the server's clock.
  if (shown(await transaction.query(showIsolation)) === 'read committed') {
    progress.limit = waitLimitFrom(await transaction.query(limitWait(request)))
    progress.began = performance.now()
    await transaction.command(text)
    await transaction.query(restoreTimeouts)
    return
  }
  const limit = utilityLimit(
    request,
    shown(await transaction.query(showLockTimeout)),
    shown(await transaction.query(showStatementTimeout)),
  )
  progress.limit = limit
  for (const setting of limit.set) await transaction.command(setting)
  progress.began = performance.now()
  await transaction.command(text)
  for (const setting of limit.restore) await transaction.command(setting)
}
