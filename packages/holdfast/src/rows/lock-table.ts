import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { sqlStateOf } from '../core/sql-state.ts'
import type { TableName } from '../engines/postgres/identifier.ts'
import { tableLockHolders } from '../engines/postgres/row-blockers.ts'
import { lockTableText, type TableLockMode } from '../engines/postgres/table-lock.ts'
import {
  setLockTimeout,
  setStatementTimeout,
  shown,
  showLockTimeout,
  showStatementTimeout,
  statementTimeoutFor,
  utilityLimit,
  type WaitLimit,
} from '../engines/postgres/wait-limit.ts'
import { contention } from './contention.ts'
import { assertMaybeOpen } from './lock-rows.ts'
import { displayName } from './row-key.ts'
import type { TableWait } from './row-wait.ts'

/** How a table is locked. */
export interface LockTableOptions {
  /** @defaultValue the room's `wait`, which is 'block' unless it was set */
  readonly wait?: TableWait
  /** Keep the transaction usable if the table is not granted, by a savepoint. @defaultValue false */
  readonly keepTransaction?: boolean
}

/** One call of `rows.lockTable`, its options resolved. */
export interface TableLockCall {
  readonly table: TableName
  readonly mode: TableLockMode
  readonly wait: TableWait
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
    const state = sqlStateOf(error)
    if (state === '25P01') {
      throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { cause: error, details: { subject } })
    }
    if (state !== '55P03' && !(state === '57014' && ranOut(progress))) throw error
    throw await contention(driver, {
      code: call.wait === 'nowait' ? 'ROWS_BUSY' : 'ROWS_TIMEOUT',
      cause: error,
      subject,
      waitMs: performance.now() - began,
      usable: call.keepTransaction ? transaction : undefined,
      questions: [tableLockHolders(call.table, call.mode)],
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
  const text = lockTableText(table, mode, wait === 'nowait')
  const limit = await limited(transaction, wait, progress.budgetMs)
  progress.limit = limit
  progress.began = performance.now()
  await transaction.command(text)
  if (limit === undefined) return
  await transaction.command(setLockTimeout(limit.lockTimeout))
  await transaction.command(setStatementTimeout(limit.statementTimeout))
}

async function limited<Tx>(
  transaction: Transaction<Tx>,
  wait: TableWait,
  budgetMs: number | undefined,
): Promise<WaitLimit | undefined> {
  if (wait === 'nowait' || (wait === 'block' && budgetMs === undefined)) return undefined
  const limit = utilityLimit(
    wait === 'block' ? Infinity : wait,
    budgetMs,
    shown(await transaction.query(showLockTimeout)),
    shown(await transaction.query(showStatementTimeout)),
  )
  await transaction.command(setLockTimeout(`${limit.limitMs}ms`))
  await transaction.command(setStatementTimeout(statementTimeoutFor(limit)))
  return limit
}

function ranOut({ limit, began }: Progress): boolean {
  return limit?.ours === true && performance.now() - began >= limit.limitMs
}
