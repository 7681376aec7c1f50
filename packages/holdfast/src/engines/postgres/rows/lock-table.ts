import type { Driver, Transaction } from '../../../core/driver.ts'
import { holdfastError } from '../../../core/errors.ts'
import { sqlStateOf } from '../../../core/sql-state.ts'
import { displayName } from '../../../core/table-name.ts'
import type { TableToLock } from '../../../rows/engine.ts'
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
} from '../tx/wait-limit.ts'
import { contention } from './contention.ts'
import { notGranted, waiterOf } from './limited-wait.ts'
import { tableLockHolders } from './row-blockers.ts'
import { lockTableText } from './table-lock.ts'

/**
 * Locks a whole table, by utility statements only: none of them takes a snapshot, so a REPEATABLE
 * READ transaction that begins with this reads what was committed while it waited.
 */
export async function lockTable<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: TableToLock,
): Promise<void> {
  const subject = displayName(call.table)
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
}

interface Progress {
  /** Of the caller's transaction; the one inside a savepoint need not know. */
  readonly budgetMs: number | undefined
  limit: WaitLimit | undefined
  began: number
}

async function take<Tx>(
  transaction: Transaction<Tx>,
  { table, mode, wait }: TableToLock,
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
