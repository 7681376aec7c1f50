import type { Driver, Transaction } from '../core/driver.ts'
import { channels } from '../core/events.ts'
import { displayName } from '../core/table-name.ts'
import type { RowEngine, TableToLock } from './engine.ts'
import { assertMaybeOpen } from './lock-rows.ts'
import type { TableWait } from './row-wait.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** How a table is locked. */
export interface LockTableOptions {
  /** What to do if somebody else has it. @defaultValue '2 s', or what `createHoldfast` was given */
  readonly wait?: TableWait
  /** Keep the transaction usable if the table is not granted, by a savepoint. @defaultValue false */
  readonly keepTransaction?: boolean
}

export const lockTableOptions: KnownOptions<LockTableOptions> = {
  wait: 'checked',
  keepTransaction: 'boolean',
}

/** Locks a table as a whole. */
export async function lockTable<Tx>(
  engine: RowEngine,
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: TableToLock,
): Promise<void> {
  const subject = displayName(call.table)
  assertMaybeOpen(transaction, subject)
  const began = performance.now()
  await engine.lockTable(driver, transaction, call)
  if (!channels.rowsTableLocked.hasSubscribers) return
  const waitMs = performance.now() - began
  channels.rowsTableLocked.publish({ table: subject, mode: call.mode, waitMs })
}
