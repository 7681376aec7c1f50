import type { CallSite } from '../core/locks/call-site.ts'
import type { Driver, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { channels } from '../core/events.ts'
import { displayName } from '../core/table-name.ts'
import type { WaitTerms } from '../core/options/wait.ts'
import type { RowAnswer, RowEngine, RowStrength, RowTarget } from './engine.ts'
import { keyFields, type KeyOptions, type RowKey } from './row-key.ts'
import type { RowWait } from './row-wait.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

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

export const lockRowsOptions: KnownOptions<LockRowsOptions> = {
  strength: 'checked',
  wait: 'checked',
  keepTransaction: 'boolean',
  expectAll: 'boolean',
  columns: 'texts',
  keyColumns: 'texts',
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
  engine: RowEngine,
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  call: RowLockCall,
): Promise<readonly RowAnswer[]> {
  const subject = displayName(call.target.table)
  assertMaybeOpen(transaction, subject)
  const keys = call.keys.map((key) => keyFields(key, call.target))
  if (keys.length === 0) return []
  const began = performance.now()
  const answers = await engine.lock(driver, transaction, { ...call, keys })
  if (new Set(answers.map(({ positions }) => positions[0])).size < answers.length) {
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

/** Throws if the client knows that there is no transaction; otherwise the server has the word. */
export function assertMaybeOpen<Tx>(transaction: Transaction<Tx>, subject: string): void {
  if (transaction.state() === 'none') {
    throw holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject } })
  }
}
