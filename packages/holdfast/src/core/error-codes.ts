/**
 * Every error Holdfast raises. The single source for codes, classes, retryability and the page
 * docs/errors.md; a test proves that table, page and thrown codes are the same set.
 */

/** Error classes, by what the caller can do about it. */
export type ErrorClass =
  | 'UsageError'
  | 'RefusedError'
  | 'ContentionError'
  | 'UnknownOutcomeError'
  | 'DriverError'

/** What the table knows about one code. */
export interface ErrorEntry {
  readonly class: ErrorClass
  /** Running the whole operation again may succeed, and is safe. */
  readonly retryable: boolean
  /** What happened. */
  readonly what: string
  /** What to do next; part of the message. */
  readonly next: string
}

const table = {
  OPTION_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'An option has a value that cannot work.',
    next: 'Correct the option named in details.option.',
  },
  LOCK_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'A lock was asked for outside a transaction, where PostgreSQL would drop it at the end of the statement.',
    next: 'Pass the transaction handle your client gave you (not the pool or root client), or use guard(), which opens the transaction.',
  },
  LOCK_STALE_SNAPSHOT: {
    class: 'UsageError',
    retryable: false,
    what: 'At REPEATABLE READ and SERIALIZABLE the snapshot is older than the lock, so the check after the lock would read stale data.',
    next: 'Run the transaction at READ COMMITTED. Pass allowStaleSnapshot if nothing is read under the lock, or if every writer of that data is SERIALIZABLE and retries.',
  },
  LOCK_ON_STANDBY: {
    class: 'UsageError',
    retryable: false,
    what: 'This connection leads to a standby; its locks are not seen by the primary.',
    next: 'Send locking transactions to the primary (target_session_attrs=read-write, or the primary pool).',
  },
  LOCK_KEY_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'A lock key is malformed.',
    next: 'Build keys with lockKey(namespace, ...parts); parts are strings, integers or bigints, at least one of them.',
  },
  LOCK_NAMESPACE_DUPLICATE: {
    class: 'UsageError',
    retryable: false,
    what: 'The lock namespace is declared twice.',
    next: 'Declare it once, in one module, and import it from there.',
  },
  LOCK_ORDER: {
    class: 'UsageError',
    retryable: false,
    what: 'Locks were taken in an order that can deadlock.',
    next: 'Take all keys in one acquire() or guard() call, exclusive at once, and before any row lock.',
  },
  LOCK_NOT_HELD: {
    class: 'UsageError',
    retryable: false,
    what: 'The code expected a lock that this transaction does not hold.',
    next: 'Acquire the key earlier in the same transaction; a rolled-back savepoint releases what was locked inside it.',
  },
  LOCK_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'The lock was not granted within the limit.',
    next: 'See blockers for who holds it; retry later, raise waitMs, or shorten the holder.',
  },
  LOCK_BUSY: {
    class: 'ContentionError',
    retryable: true,
    what: 'The lock is held by someone else and the call does not wait.',
    next: 'See blockers for who holds it; retry later, or allow waiting with waitMs.',
  },
  ROWS_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'Rows were to be locked outside a transaction, where the lock ends with the statement.',
    next: 'Pass the transaction handle your client gave you, not the pool or root client.',
  },
  ROWS_KEY_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'A row key does not fit the key columns.',
    next: 'Pass a scalar for one key column, or an object with exactly the key columns.',
  },
  ROWS_MISSING: {
    class: 'RefusedError',
    retryable: false,
    what: 'Some of the rows that had to be locked do not exist or were skipped.',
    next: 'Look at details.missing and details.skipped, or drop expectAll and handle them yourself.',
  },
  ROWS_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'The rows or the table could not be locked within the limit.',
    next: 'See blockers for who holds them; retry later or raise the limit.',
  },
  ROWS_BUSY: {
    class: 'ContentionError',
    retryable: true,
    what: 'A row or the table is locked by someone else and the call does not wait.',
    next: 'Retry later, or allow waiting.',
  },
  ROWS_VERSION_CONFLICT: {
    class: 'ContentionError',
    retryable: true,
    what: 'The row changed (or vanished) since it was read.',
    next: 'Read it again and decide again; the optimistic helpers do so a bounded number of times.',
  },
  TX_NESTED: {
    class: 'UsageError',
    retryable: false,
    what: 'A new transaction was asked for inside one that is already open on the same database.',
    next: 'Use the tx you have: locks.acquire(tx, …) joins it. A second connection here could wait for itself for ever.',
  },
  TX_ROLLED_BACK: {
    class: 'UsageError',
    retryable: false,
    what: 'COMMIT was answered with ROLLBACK: a statement had failed and the error was swallowed, so nothing was saved.',
    next: 'Let the error of the failed statement out of the body, or wrap that statement in a savepoint.',
  },
  TX_SERIALIZATION: {
    class: 'ContentionError',
    retryable: true,
    what: 'The transaction kept conflicting with others (SQLSTATE 40001) until the retry budget was spent.',
    next: 'Take a lock first so that writers queue, or raise the retry budget.',
  },
  TX_DEADLOCK: {
    class: 'ContentionError',
    retryable: true,
    what: 'The transaction was chosen as a deadlock victim (SQLSTATE 40P01) until the retry budget was spent.',
    next: 'Take locks in one call so that they are sorted, advisory locks before rows.',
  },
  TX_DEADLINE: {
    class: 'ContentionError',
    retryable: true,
    what: 'The transaction did not finish before its deadline and was rolled back.',
    next: 'Shorten the body, move slow I/O out of it, or raise deadlineMs.',
  },
  TX_CLIENT_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: "The client's own transaction timer ran out and it rolled back.",
    next: 'Raise the timeout of the client (Prisma: transactionTimeoutMs of fromPrisma), or shorten the body.',
  },
  COMMIT_UNKNOWN: {
    class: 'UnknownOutcomeError',
    retryable: false,
    what: 'The connection was lost while COMMIT was in flight: the transaction may or may not have happened.',
    next: 'Do not repeat blindly. Look for its effect (a unique key or operation id), then decide.',
  },
  CONNECTION_LOST: {
    class: 'DriverError',
    retryable: true,
    what: 'The connection was lost before COMMIT; PostgreSQL rolled the transaction back.',
    next: 'Safe to run again from the start once the database is reachable.',
  },
  DRIVER_HANDLE_INVALID: {
    class: 'DriverError',
    retryable: false,
    what: 'The object passed as client or transaction is not one this driver knows.',
    next: 'Pass the client or transaction of the library the driver was made for; see docs/drivers.md.',
  },
  ENGINE_LOCKS_ARE_STUBS: {
    class: 'DriverError',
    retryable: false,
    what: 'This server accepts advisory locks and does not enforce them, so a lock would protect nothing.',
    next: 'Use a server with real advisory locks, or row locks; see docs/poolers.md.',
  },
  SELF_TEST_INCONCLUSIVE: {
    class: 'DriverError',
    retryable: true,
    what: 'The start-up self-test could not get two connections at once.',
    next: 'Give the pool at least two connections, or run the self-test through a pool that has.',
  },
} as const

/** Stable string codes: adding one is a minor change, changing or removing one a major change. */
export type ErrorCode = keyof typeof table

/** The table itself, for documentation and tooling. */
export const errorCodes: Readonly<Record<ErrorCode, ErrorEntry>> = table
