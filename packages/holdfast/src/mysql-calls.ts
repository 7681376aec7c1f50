/** What calls take on MariaDB and MySQL: less than on PostgreSQL, so that what is refused there does not compile. */
import type { Claims as AnyClaims } from './claims/claims.ts'
import type {
  ClaimsOptions as AnyClaimsOptions,
  TransactionClaimsOptions as AnyTransactionClaimsOptions,
} from './claims/layout.ts'
import type { PaceOptions, RowHandler, TransactionHandler, Worker } from './claims/run-options.ts'
import type { Row } from './core/driver.ts'
import type { GuardOptions, Locks as AnyLocks, TryGuarded, TryGuardOptions } from './locks/locks.ts'
import type { LockInput } from './locks/wanted-locks.ts'
import type { LockedRows, LockRowsOptions } from './rows/lock-rows.ts'
import type { RowKey, TableOf } from './rows/row-key.ts'
import type { Rows as AnyRows } from './rows/rows.ts'
import type { VersionedUpdate } from './rows/update-versioned.ts'
import type { Attempt } from './tx/run.ts'
import type { RunOptions as TransactionOptions } from './tx/run-options.ts'

/** No statement here waits for a standby, and there is one server. */
type OnePrimary<Options> = Omit<Options, 'durable' | 'scopes'>

type Body<Tx, T> = (tx: Tx, attempt: Attempt) => Promise<T>

/** Transactions on MariaDB and MySQL. */
export interface Transactions<Tx> {
  /**
   * Opens a transaction, runs the body with the client's own handle, commits, and runs the whole of it again on a
   * deadlock or a lost connection.
   *
   * @example await hf.transaction(async (tx) => { … }, { isolation: 'serializable' })
   * @throws TX_NESTED, TX_ROLLED_BACK, TX_ENDED_INSIDE, TX_DEADLINE, COMMIT_UNKNOWN, CONNECTION_LOST
   */
  run<T>(body: Body<Tx, T>, options?: OnePrimary<TransactionOptions>): Promise<T>
}

/** Locks by name on MariaDB and MySQL. */
export interface Locks<Tx> extends Omit<AnyLocks<Tx>, 'guard' | 'tryGuard'> {
  /**
   * Opens a transaction, takes the locks, runs the body with the client's own handle, commits.
   *
   * @example await hf.guard(lockKey('image-upload', userId), async (tx) => { …check, then write… })
   * @throws those of `acquire` and of `tx.run`
   */
  guard<T>(
    keys: LockInput | readonly LockInput[],
    body: Body<Tx, T>,
    options?: OnePrimary<GuardOptions>,
  ): Promise<T>
  /**
   * The same if the locks are free; if one is not, the body does not run, and the answer says who has it.
   *
   * @example
   * const made = await hf.tryGuard(lockKey('report', day), async (tx) => makeReport(tx, day))
   * if (!made.ok) return 'somebody else is at it'
   * @throws those of `guard`, but LOCK_BUSY and LOCK_TIMEOUT
   */
  tryGuard<T>(
    keys: LockInput | readonly LockInput[],
    body: Body<Tx, T>,
    options?: OnePrimary<TryGuardOptions>,
  ): Promise<TryGuarded<T>>
}

/** A table whose rows are claimed with a lease, on MariaDB and MySQL. */
export type ClaimsOptions = Omit<AnyClaimsOptions, 'bucket' | 'perKey'>

/** A table whose rows are claimed, worked on and finished in one transaction of the caller's. */
export type TransactionClaimsOptions = Omit<AnyTransactionClaimsOptions, 'bucket' | 'perKey'>

/** What a worker does with a row. Without `listen`: these products have no NOTIFY, so workers poll. */
export type RunOptions<Tx, R> = Omit<PaceOptions, 'listen'> &
  (RowHandler<R> | TransactionHandler<Tx, R>)

/** Rows of a table of the caller's on MariaDB and MySQL, claimed with a lease and fenced by a token. */
export interface Claims<Tx, R> extends Omit<AnyClaims<Tx, R>, 'run'> {
  /**
   * Works on rows until it is stopped. Looks at the table first.
   *
   * @example const worker = await outbox.run({ handler: async (row, { signal }) => await publish(row, { signal }) })
   * @throws CLAIM_TABLE_UNFIT, OPTION_INVALID
   */
  run(options: RunOptions<Tx, R>): Promise<Worker>
}

/** A new value of a column. A date goes as text: a column of these products has no time zone. */
export type Settable =
  | string
  | number
  | bigint
  | boolean
  | null
  | (object & { readonly getTime?: never })

/** Row locks on MariaDB and MySQL. Without `lockTable`: LOCK TABLES commits the open transaction. */
export interface Rows<Tx>
  extends Omit<AnyRows<Tx>, 'lock' | 'lockTable' | 'updateVersioned' | 'optimistic'> {
  /**
   * Locks rows by key, sorted so that two callers cannot deadlock on them, and returns them as they are under the lock.
   *
   * @example
   * const { rows: [from, to] } = await hf.rows.lock<Account>(tx, 'accounts', [fromId, toId], { expectAll: true })
   * @throws ROWS_MISSING, ROWS_BUSY, ROWS_TIMEOUT, ROWS_OUTSIDE_TRANSACTION, ROWS_KEY_INVALID, OPTION_INVALID
   */
  lock<R = Row, K extends RowKey = RowKey>(
    tx: Tx,
    table: TableOf<Tx>,
    keys: readonly K[],
    options?: Omit<LockRowsOptions, 'strength'> & {
      /** Both lock the row for whoever else wants to; these products have no weaker lock that is worth it. */
      readonly strength?: 'update' | 'no key update'
    },
  ): Promise<LockedRows<R, K>>
  /**
   * Changes a row only if it still has the version that was read, counts the version up, and returns the new row.
   *
   * @example await hf.rows.updateVersioned(tx, 'documents', id, { version: doc.version, set: { body } })
   * @throws ROWS_VERSION_CONFLICT, ROWS_CHANGE_SUPPRESSED, ROWS_BUSY, ROWS_TIMEOUT, ROWS_OUTSIDE_TRANSACTION,
   * ROWS_KEY_INVALID, OPTION_INVALID
   */
  updateVersioned<R = Row>(
    tx: Tx,
    table: TableOf<Tx>,
    key: RowKey,
    update: Omit<VersionedUpdate, 'set'> & { readonly set: Readonly<Record<string, Settable>> },
  ): Promise<R>
  /**
   * Runs a transaction of optimistic changes, and the whole of it again when one of them lost.
   *
   * @throws ROWS_VERSION_CONFLICT when the attempts are spent; those of `tx.run`
   */
  optimistic<T>(body: Body<Tx, T>, options?: OnePrimary<TransactionOptions>): Promise<T>
}
