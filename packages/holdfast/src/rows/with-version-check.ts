import { rolledBack } from '../core/errors/commit-failure.ts'
import type { Driver, Row } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { displayName } from '../core/table-name.ts'
import { atMost, type WaitTerms } from '../core/options/wait.ts'
import { type RetryInfo, retryDefaults, retrying } from '../tx/retry.ts'
import { runTransaction } from '../tx/run.ts'
import type { RowAnswer, RowEngine, VersionedTarget } from './engine.ts'
import { lockRows } from './lock-rows.ts'
import { placed } from './orm-table.ts'
import { keyFields, type RowKey } from './row-key.ts'
import type { TableWait } from './row-wait.ts'
import {
  changeSuppressed,
  versionConflict,
  type VersionOptions,
  versionOptions,
} from './update-versioned.ts'
import { type RunOptions, runOptions } from '../tx/run-options.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

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

export const versionCheck: KnownOptions<VersionCheck<never, never, never, never>> = {
  ...versionOptions,
  work: 'function',
  write: 'function',
  attempts: 'checked',
  countVersion: 'boolean',
  wait: 'checked',
  columns: 'texts',
  signal: 'signal',
  onRetry: 'function',
  transaction: runOptions,
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
  engine: RowEngine,
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
  return retrying((attempt) => once(engine, driver, call, attempt), {
    policy,
    patient: { codes: [], forMs: 0 },
    signal,
    onRetry,
  })
}

async function once<Tx>(
  engine: RowEngine,
  driver: Driver<Tx>,
  call: CheckedCall<Tx>,
  attempt: number,
): Promise<unknown> {
  const { columns, signal } = call
  const key = keyFields(call.key, call.target)
  const run: RunOptions = {
    ...call.transaction,
    ...(signal === undefined ? {} : { signal }),
  }
  // A transaction for one read, because it refuses to start inside another one: better before the
  // slow work than after it.
  const { target, found } = await runTransaction(
    driver,
    async (transaction) => {
      const target = placed(driver, transaction.native, call.target)
      const reading = { target, key, columns, wait: call.wait }
      return { target, found: await engine.readWithin(driver, transaction, reading) }
    },
    run,
    undefined,
    'rows',
  )
  if (found === undefined) {
    const details = { subject: displayName(target.table), missing: 1, skipped: 0 }
    throw holdfastError('ROWS_MISSING', { details })
  }
  const { version, row } = found
  if (version === undefined) {
    throw holdfastError('OPTION_INVALID', {
      details: { option: 'versionColumn', subject: 'the version of the row is NULL' },
    })
  }
  const result = await call.work(row, { attempt, signal })
  return runTransaction(
    driver,
    async (transaction) => {
      const lock = async (wait: WaitTerms): Promise<RowAnswer | undefined> => {
        const [answer] = await lockRows(engine, driver, transaction, {
          target,
          keys: [call.key],
          strength: 'no key update',
          wait,
          columns,
          versionColumn: target.versionColumn,
          keepTransaction: false,
          // The first lock of its transaction: there is no order to tell.
          site: {},
        })
        return answer?.locked === true ? answer : undefined
      }
      /** Throws unless the row can be seen as it was read. */
      const assertThere = async (): Promise<void> => {
        const seen = await engine.read(driver, transaction, { target, key, columns: [] })
        if (seen === undefined) throw versionConflict(target, undefined)
        if (seen.version !== version) throw versionConflict(target, seen.version ?? 'NULL')
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
        const counting = { target, key, columns: [], version, wait: call.wait }
        const counted = await engine.count(driver, transaction, counting).catch(afterWrite)
        if (counted === 'suppressed') throw changeSuppressed(target)
      }
      return written
    },
    run,
    undefined,
    'rows',
  )
}

function afterWrite(error: unknown): never {
  throw rolledBack(error)
}
