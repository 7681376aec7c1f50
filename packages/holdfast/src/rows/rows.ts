import { callSite } from '../core/locks/call-site.ts'
import type { Driver, Row, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { defaultTerms, type WaitTerms, waitTerms } from '../core/options/wait.ts'
import { displayName } from '../core/table-name.ts'
import { inTurn } from '../tx/in-turn.ts'
import { type RetryPolicy, retryTerms } from '../tx/retry.ts'
import { type Attempt, runTransaction } from '../tx/run.ts'
import type { RowAnswer, RowEngine, RowStrength, TableLockMode } from './engine.ts'
import { type LockedRows, lockRows, type LockRowsOptions, lockRowsOptions } from './lock-rows.ts'
import { lockTable, type LockTableOptions, lockTableOptions } from './lock-table.ts'
import { placed, placedTable } from './orm-table.ts'
import { type RowKey, rowTarget, type TableInput, tableName, type TableOf } from './row-key.ts'
import { rowWords, type TableWait, tableWords } from './row-wait.ts'
import {
  updateVersioned,
  versionedTarget,
  type VersionedUpdate,
  versionedUpdate,
} from './update-versioned.ts'
import {
  type CheckedCall,
  type VersionCheck,
  versionCheck,
  withVersionCheck,
} from './with-version-check.ts'
import { assertFunction, assertTexts } from '../core/options/given.ts'
import { type KnownOptions, optionsGiven } from '../core/options/known-options.ts'
import { assertDriver } from '../core/client-kind.ts'
import {
  type RunOptions,
  runOptions,
  type TxOptions,
  txOptions,
  withTxDefaults,
} from '../tx/run-options.ts'

/** Settings of the room. */
export interface RowsOptions {
  /** How calls wait that do not say so themselves. @defaultValue '2 s' */
  readonly wait?: TableWait
  /** Defaults of the transactions that it opens. */
  readonly tx?: TxOptions
}

export const rowsOptions: KnownOptions<RowsOptions> = {
  wait: 'checked',
  tx: txOptions,
}

/** Rows and tables of the caller's own, locked in the caller's own transaction. */
export interface Rows<Tx> {
  /**
   * Locks rows by key, sorted so that two callers cannot deadlock on them, and returns them as
   * they are under the lock. The locks are held until the transaction ends. Where several tables
   * are locked, all callers must take them in the same order.
   *
   * @example
   * const { rows: [from, to] } = await hf.rows.lock<Account>(tx, 'accounts', [fromId, toId], { expectAll: true })
   * @throws ROWS_MISSING, ROWS_BUSY, ROWS_TIMEOUT, ROWS_OUTSIDE_TRANSACTION, ROWS_KEY_INVALID,
   * OPTION_INVALID
   */
  lock<R = Row, K extends RowKey = RowKey>(
    tx: Tx,
    table: TableOf<Tx>,
    keys: readonly K[],
    options?: LockRowsOptions,
  ): Promise<LockedRows<R, K>>
  /**
   * Locks a whole table, for the rare check that no row lock can protect. `share row exclusive`
   * keeps other writers out and readers in. Take it first in the transaction.
   *
   * @example await hf.rows.lockTable(tx, 'bookings', 'share row exclusive', { wait: 500 })
   * @throws ROWS_BUSY, ROWS_TIMEOUT, ROWS_OUTSIDE_TRANSACTION, OPTION_INVALID
   */
  lockTable(
    tx: Tx,
    table: TableOf<Tx>,
    mode: TableLockMode,
    options?: LockTableOptions,
  ): Promise<void>
  /**
   * Changes a row only if it still has the version that was read, counts the version up, and
   * returns the new row. After a conflict the transaction is still usable.
   *
   * @example await hf.rows.updateVersioned(tx, 'documents', id, { version: doc.version, set: { body } })
   * @throws ROWS_VERSION_CONFLICT (`details.reason` is `changed`, with `foundVersion`, or `missing`),
   * ROWS_CHANGE_SUPPRESSED, ROWS_BUSY, ROWS_TIMEOUT, ROWS_OUTSIDE_TRANSACTION, ROWS_KEY_INVALID, OPTION_INVALID
   */
  updateVersioned<R = Row>(
    tx: Tx,
    table: TableOf<Tx>,
    key: RowKey,
    update: VersionedUpdate,
  ): Promise<R>
  /**
   * Runs a transaction of optimistic changes, and the whole of it again when one of them lost:
   * on ROWS_VERSION_CONFLICT as well as on what `tx.run` repeats. The body must read anew each time.
   *
   * @example
   * await hf.rows.optimistic(async (tx) => {
   *   const doc = await load(tx, id)
   *   await hf.rows.updateVersioned(tx, 'documents', id, { version: doc.version, set: edit(doc) })
   * })
   * @throws ROWS_VERSION_CONFLICT when the attempts are spent; those of `tx.run`
   */
  optimistic<T>(body: (tx: Tx, attempt: Attempt) => Promise<T>, options?: RunOptions): Promise<T>
  /**
   * Reads a row without a lock, does slow work with nothing held, then locks the row, makes sure
   * that its version has not moved, and writes. The version is counted up, so of several that read
   * the same version one writes.
   *
   * @example
   * await hf.rows.withVersionCheck<Document, string, void>('documents', id, {
   *   work: (doc) => summarize(doc.body),
   *   write: async (tx, doc, summary) => { await save(tx, doc.id, summary) },
   * })
   * @throws ROWS_MISSING, ROWS_VERSION_CONFLICT, ROWS_CHANGE_SUPPRESSED, ROWS_BUSY, ROWS_TIMEOUT, TX_NESTED,
   * OPTION_INVALID;
   * those of `tx.run`
   */
  withVersionCheck<R = Row, Result = unknown, Written = unknown>(
    table: TableOf<Tx>,
    key: RowKey,
    check: VersionCheck<Tx, R, Result, Written>,
  ): Promise<Written>
}

const strengths: readonly RowStrength[] = ['update', 'no key update', 'share', 'key share']

const tableLockModes: readonly TableLockMode[] = [
  'access share',
  'row share',
  'row exclusive',
  'share update exclusive',
  'share',
  'share row exclusive',
  'exclusive',
  'access exclusive',
]

/** Row and table locks over a driver, as its engine has them. */
export function rowsOver<Tx>(
  engine: RowEngine,
  driver: Driver<Tx>,
  given: RowsOptions = {},
): Rows<Tx> {
  assertDriver(driver, 'createRows', engine.of)
  const options = optionsGiven(given, rowsOptions)
  const defaultWait = defaultTerms(options.wait, tableWords)
  /** Runs a call in its turn, with what is left of its wait by then. */
  const joined = <C extends { readonly wait: WaitTerms }, T>(
    tx: Tx,
    subject: string,
    call: C,
    run: (transaction: Transaction<Tx>, call: C) => Promise<T>,
  ): Promise<T> => {
    const terms = {
      wait: call.wait,
      late: () => holdfastError('ROWS_TIMEOUT', { details: { subject, endedBy: 'wait' } }),
      outside: () => holdfastError('ROWS_OUTSIDE_TRANSACTION', { details: { subject } }),
    }
    return inTurn(driver, tx, terms, (transaction, wait) => run(transaction, { ...call, wait }))
  }
  const rows: Rows<Tx> = {
    async lock<R, K extends RowKey>(
      tx: Tx,
      table: TableInput,
      keys: readonly K[],
      given?: LockRowsOptions,
    ): Promise<LockedRows<R, K>> {
      const site = callSite(rows.lock)
      const lockOptions = optionsGiven(given, lockRowsOptions)
      assertTexts(lockOptions.columns, 'columns')
      if (!Array.isArray(keys)) throw keysNoList()
      const { strength = 'no key update', columns, keepTransaction = false } = lockOptions
      if (!strengths.includes(strength)) throw invalid('strength', strengths)
      const target = placed(driver, tx, rowTarget(table, lockOptions.keyColumns))
      const call = {
        target,
        keys,
        strength,
        wait: waitTerms(lockOptions.wait, defaultWait, rowWords),
        columns,
        versionColumn: undefined,
        keepTransaction,
        site,
      }
      const subject = displayName(target.table)
      const found = await joined(tx, subject, call, (transaction, timed) =>
        lockRows(engine, driver, transaction, timed),
      )
      const answers = byKey(found)
      const rest = answers.filter(({ locked }) => !locked)
      const keyAt = ({ position }: { readonly position: number }): K => keys[position] as K
      const result: LockedRows<R, K> = {
        rows: answers.filter(({ locked }) => locked).map(({ row }) => row as R),
        missing: rest.filter(({ there }) => !there).map(keyAt),
        skipped: rest.filter(({ there }) => there).map(keyAt),
      }
      if (lockOptions.expectAll === true && rest.length > 0) {
        const { missing, skipped } = result
        throw holdfastError('ROWS_MISSING', {
          details: { subject, missing: missing.length, skipped: skipped.length },
        })
      }
      return result
    },
    async lockTable(tx, table, mode, given) {
      const lockOptions = optionsGiven(given, lockTableOptions)
      if (!tableLockModes.includes(mode)) throw invalid('mode', tableLockModes)
      const call = {
        table: placedTable(driver, tx, tableName(table)),
        mode,
        wait: waitTerms(lockOptions.wait, defaultWait, tableWords),
        keepTransaction: lockOptions.keepTransaction ?? false,
      }
      await joined(tx, displayName(call.table), call, (transaction, timed) =>
        lockTable(engine, driver, transaction, timed),
      )
    },
    async updateVersioned<R>(tx: Tx, table: TableInput, key: RowKey, given: VersionedUpdate) {
      const update = optionsGiven(given, versionedUpdate, 'update')
      assertTexts(update.columns, 'columns')
      const call = {
        ...update,
        site: callSite(rows.updateVersioned),
        target: placed(driver, tx, versionedTarget(table, update)),
        key,
        wait: waitTerms(update.wait, defaultWait, tableWords),
      }
      return (await joined(tx, displayName(call.target.table), call, (transaction, timed) =>
        updateVersioned(engine, driver, transaction, timed),
      )) as R
    },
    async optimistic(body, given) {
      assertFunction(body)
      const filled = withTxDefaults(options.tx, optionsGiven(given, runOptions))
      const { retry } = filled
      // Before anything is made of it.
      retryTerms(retry)
      return runTransaction(
        driver,
        (transaction, attempt) => body(transaction.native, attempt),
        retry === false ? filled : { ...filled, retry: alsoOnConflict(retry) },
        undefined,
        'rows',
      )
    },
    async withVersionCheck<R, Result, Written>(
      table: TableInput,
      key: RowKey,
      given: VersionCheck<Tx, R, Result, Written>,
    ) {
      const check = optionsGiven(given, versionCheck as KnownOptions<typeof given>, 'check')
      assertFunction(check.work, 'work')
      assertFunction(check.write, 'write')
      assertTexts(check.columns, 'columns')
      // The row's type is the caller's word; inside, a row is a row.
      const call = {
        ...(check as unknown as VersionCheck<Tx, Row, unknown, unknown>),
        target: versionedTarget(table, check),
        key,
        transaction: withTxDefaults(options.tx, check.transaction),
        wait: waitTerms(check.wait, defaultWait, tableWords),
      } satisfies CheckedCall<Tx>
      return (await withVersionCheck(engine, driver, call)) as Written
    },
  }
  return rows
}

/** One answer for each key given, in that order. */
function byKey(
  found: readonly RowAnswer[],
): readonly (RowAnswer & { readonly position: number })[] {
  return found
    .flatMap((answer) => answer.positions.map((position) => ({ ...answer, position })))
    .toSorted((a, b) => a.position - b.position)
}

/** The body reads anew each time, so that losing to somebody else is no reason to give up. */
function alsoOnConflict(retry: RetryPolicy = {}): RetryPolicy {
  const conflict = 'ROWS_VERSION_CONFLICT'
  return retry.onlyOn === undefined
    ? { ...retry, on: [...(retry.on ?? []), conflict] }
    : { ...retry, onlyOn: [...retry.onlyOn, conflict] }
}

function keysNoList(): Error {
  const subject = 'keys must be a list, also of one key: [id]'
  return holdfastError('ROWS_KEY_INVALID', { details: { subject } })
}

function invalid(option: string, allowed: readonly string[]): Error {
  const subject = `${option} must be one of ${allowed.map((word) => `'${word}'`).join(', ')}`
  return holdfastError('OPTION_INVALID', { details: { option, subject } })
}
