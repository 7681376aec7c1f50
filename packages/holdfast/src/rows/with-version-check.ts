import type { Driver, Row, Statement, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import {
  countVersion,
  readVersion,
  type VersionedTarget,
} from '../engines/postgres/rows/row-version.ts'
import type { RowAnswer } from '../engines/postgres/rows/rows.ts'
import { tableLockHolders } from '../engines/postgres/rows/row-blockers.ts'
import type { TableLockMode } from '../engines/postgres/rows/table-lock.ts'
import { type RetryInfo, retryDefaults, retrying } from '../tx/retry.ts'
import { type RunOptions, runTransaction } from '../tx/run.ts'
import { withOperators } from '../engines/postgres/sql/own-operators.ts'
import { lockRows } from './lock-rows.ts'
import { displayName, keyFields, type RowKey } from './row-key.ts'
import { atMost, type WaitTerms } from '../core/wait.ts'
import { LimitedWait, type Waiting } from './limited-wait.ts'
import type { TableWait } from './row-wait.ts'
import { changeSuppressed, type VersionOptions, versionConflict } from './update-versioned.ts'
import { isTrue } from '../core/is-true.ts'

/** What `work` is told besides the row. */
export interface WorkAttempt {
  /** From 1. */
  readonly attempt: number
  readonly signal: AbortSignal | undefined
}

/** Read, work for as long as it takes, then write only if the row is still the one that was read. */
export interface VersionCheck<Tx, R, Result, Written> extends VersionOptions {
  /** Slow work on the row as read. No transaction is open and no lock is held meanwhile. */
  readonly work: (row: R, attempt: WorkAttempt) => Promise<Result>
  /** Runs in a transaction, under the lock of the row, which is still what `work` saw. */
  readonly write: (tx: Tx, row: R, result: Result) => Promise<Written>
  /** How often to read and work in all, if the row keeps changing. @defaultValue 1 */
  readonly attempts?: number
  /**
   * Count the version up after `write`, unless `write` did. Turn it off only where a trigger or
   * the ORM changes the version with every change. @defaultValue true
   */
  readonly countVersion?: boolean
  /** How to wait for the row's lock. @defaultValue '2 s', or what `createHoldfast` was given */
  readonly wait?: TableWait
  /** Columns to read. Name them where the client cannot read all. @defaultValue all */
  readonly columns?: readonly string[]
  readonly signal?: AbortSignal
  /** Called before the row is read again. */
  readonly onRetry?: (info: RetryInfo) => void
  /** Options of both transactions. Over several primaries, `scopes` says on which of them the row is. */
  readonly transaction?: Omit<RunOptions, 'signal'>
}

/** `withVersionCheck` with its options resolved. */
export interface CheckedCall<Tx> extends Omit<VersionCheck<Tx, Row, unknown, unknown>, 'wait'> {
  readonly target: VersionedTarget
  readonly key: RowKey
  readonly wait: WaitTerms
}

/**
 * Only the reading and the writing are transactions, both short. A changed or deleted row is found
 * under the lock, before `write` runs; then the whole is repeated or given up.
 */
export async function withVersionCheck<Tx>(
  driver: Driver<Tx>,
  call: CheckedCall<Tx>,
): Promise<unknown> {
  const { attempts = 1, signal, onRetry } = call
  if (!Number.isInteger(attempts) || attempts < 1) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'attempts', subject: 'attempts must be a whole number, 1 or more' },
    })
  }
  // The work may be slow by design, so only the number of attempts is limited, not their time.
  const policy = { ...retryDefaults, attempts, budgetMs: Infinity, on: ['ROWS_VERSION_CONFLICT'] }
  return retrying((attempt) => once(driver, call, attempt), {
    policy,
    patient: { codes: [], forMs: 0 },
    signal,
    onRetry,
  })
}

async function once<Tx>(
  driver: Driver<Tx>,
  call: CheckedCall<Tx>,
  attempt: number,
): Promise<unknown> {
  const { key, signal } = call
  let { target } = call
  const fields = keyFields(key, target)
  const run: RunOptions = {
    ...call.transaction,
    ...(signal === undefined ? {} : { signal }),
  }
  // A transaction for one read, because it refuses to start inside another one: better before the
  // slow work than after it.
  const [found] = await runTransaction(
    driver,
    async (transaction) => {
      target = await withOperators(driver, transaction, target)
      return await limited(driver, transaction, call, {
        does: 'lock',
        mode: 'access share',
        statement: readVersion(target, JSON.stringify(fields), call.columns),
      })
    },
    run,
    undefined,
    'rows',
  )
  if (found === undefined) {
    const details = { subject: displayName(target.table), missing: 1, skipped: 0 }
    throw holdfastError('ROWS_MISSING', { details })
  }
  const { '#version': version, ...row } = found
  if (typeof version !== 'string') {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'versionColumn', subject: 'the version of the row is NULL' },
    })
  }
  const result = await call.work(row, { attempt, signal })
  return runTransaction(
    driver,
    async (transaction) => {
      const lock = async (wait: WaitTerms): Promise<RowAnswer | undefined> => {
        const [answer] = await lockRows(driver, transaction, {
          target,
          keys: [key],
          strength: 'no key update',
          wait,
          columns: call.columns,
          versionColumn: target.versionColumn,
          keepTransaction: false,
          // The first lock of its transaction: there is no order to tell.
          site: {},
        })
        return answer?.locked === true ? answer : undefined
      }
      /** Throws unless the row can be seen as it was read. */
      const assertThere = async (): Promise<void> => {
        const [seen] = await transaction.query(readVersion(target, JSON.stringify(fields), []))
        const there = seen?.['#version']
        if (there === version) return
        const found = typeof there === 'string' ? there : 'NULL'
        throw versionConflict(target, seen === undefined ? undefined : found)
      }
      const asked = performance.now()
      let locked = await lock(call.wait)
      if (locked === undefined) {
        await assertThere()
        // A policy keeps it from us, or another row has taken the place of the one that was waited for.
        const { limitMs = Infinity } = call.wait
        locked = await lock(atMost(call.wait, limitMs - (performance.now() - asked)))
      }
      if (locked === undefined) {
        await assertThere()
        throw changeSuppressed(target)
      }
      if (locked.version !== version) throw versionConflict(target, locked.version ?? 'NULL')
      const written = await call.write(transaction.native, locked.row, result)
      if (call.countVersion !== false) {
        const sought = { ...fields, [target.versionColumn]: version }
        const [counted] = await limited(driver, transaction, call, {
          does: 'change',
          mode: 'row exclusive',
          statement: countVersion(target, JSON.stringify(sought)),
        })
        if (isTrue(counted?.['suppressed'])) throw changeSuppressed(target)
      }
      return written
    },
    run,
    undefined,
    'rows',
  )
}

interface LimitedStatement {
  readonly does: Waiting['does']
  /** How it locks the table. */
  readonly mode: TableLockMode
  readonly statement: Statement
}

/** For what waits for nobody but those who have locked the whole table, or an index of it. */
async function limited<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  { target: { table }, wait }: CheckedCall<Tx>,
  { does, mode, statement }: LimitedStatement,
): Promise<readonly Row[]> {
  const waiting = new LimitedWait(driver, transaction, { table, wait, does, ours: true })
  try {
    return await waiting.query(transaction, () => statement)
  } catch (error) {
    throw await waiting.failure(error, [(waiter) => tableLockHolders(table, mode, waiter)])
  }
}
