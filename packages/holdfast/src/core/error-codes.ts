/**
 * Every error Holdfast raises. The single source for codes, classes, retryability and the page
 * docs/errors.md; a test proves that table, page and thrown codes are the same set.
 */

import { connectionCodes } from './errors/error-codes-connection.ts'
import { moveCodes } from './errors/error-codes-moves.ts'
import { shardCodes } from './errors/error-codes-shards.ts'
import { ledgerCodes } from './errors/error-codes-ledger.ts'
import { rateLimitCodes } from './errors/error-codes-rate-limit.ts'
import { observeCodes } from './errors/error-codes-observe.ts'
import { transactionCodes } from './errors/error-codes-tx.ts'
import type { ErrorEntry } from './errors/error-entry.ts'

export type { ErrorClass, ErrorEntry } from './errors/error-entry.ts'

/** Those of all other rooms; each part is a table of its own. */
const otherCodes = {
  OPTION_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'An option has a value that cannot work.',
    next: 'Correct the option named in details.option.',
  },
  LOCK_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'A lock was asked for outside a transaction, where the database would drop it at the end of the statement.',
    next: 'Pass the transaction handle your client gave you (not the pool or root client), or use guard(), which opens the transaction.',
  },
  LOCK_STALE_SNAPSHOT: {
    class: 'UsageError',
    retryable: false,
    what: 'The transaction reads from a snapshot that is older than the lock, so the check after the lock would read stale data.',
    next: 'On PostgreSQL, MySQL and MariaDB run the transaction at READ COMMITTED; on SQLite take the lock before anything is read, or begin with BEGIN IMMEDIATE. On PostgreSQL pass allowStaleSnapshot if nothing is read under the lock, or if every writer of that data is SERIALIZABLE and retries.',
  },
  LOCK_ON_STANDBY: {
    class: 'UsageError',
    retryable: false,
    what: 'This connection leads to a standby; its locks are not seen by the primary.',
    next: 'Send locking transactions to the primary, through a pool of its own; on PostgreSQL target_session_attrs=read-write finds it.',
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
    what: 'The lock namespace is declared twice, with two different descriptions.',
    next: 'Declare it once, in one module, and import it from there. If you have just changed the description, restart the process.',
  },
  LOCK_ORDER: {
    class: 'UsageError',
    retryable: false,
    what: 'Locks were taken in an order that can deadlock with another order that was seen.',
    next: 'Take these locks in one acquire() or guard() call, or in one order everywhere, exclusive at once; details.cycle has both sides.',
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
    next: 'See blockers for who holds it; retry later, raise wait, or shorten the holder.',
  },
  LOCK_BUSY: {
    class: 'ContentionError',
    retryable: true,
    what: 'The lock is held by someone else and the call does not wait.',
    next: 'See blockers for who holds it; retry later, or allow waiting with wait.',
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
    next: 'Pass a value that the key column can have (a date as text), or an object with exactly the key columns, which have to identify one row.',
  },
  ROWS_MISSING: {
    class: 'RefusedError',
    retryable: false,
    what: 'Some of the rows that had to be there do not exist or were skipped.',
    next: 'Check the keys: details.missing and details.skipped count those without a row. rows.lock without expectAll returns these keys instead.',
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
    next: "Retry later, or let the call wait: `wait: '2 s'`.",
  },
  ROWS_VERSION_CONFLICT: {
    class: 'ContentionError',
    retryable: true,
    what: 'The row changed (or vanished) since it was read.',
    next: 'Read it again and decide again; the optimistic helpers do so a bounded number of times.',
  },
  ROWS_CHANGE_SUPPRESSED: {
    class: 'UsageError',
    retryable: false,
    what: 'The row still has the version: a trigger or a policy suppressed the change, or a trigger put only the version back.',
    next: 'Roll back: the other columns may be changed. Then look at the UPDATE triggers of the table and at its row-level security for this role.',
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
  ENGINE_ONE_SESSION: {
    class: 'DriverError',
    retryable: false,
    what: 'This server is a single session that everybody shares (PGlite, single-user mode), so that a lock would exclude nobody.',
    next: 'Use a PostgreSQL server, also in tests: what is safe in one session is no proof for many.',
  },
  ENGINE_MISMATCH: {
    class: 'UsageError',
    retryable: false,
    what: 'The driver is for another database product than this function.',
    next: 'For PostgreSQL import from holdfast, for MariaDB and MySQL from holdfast/mysql, for SQLite from holdfast/sqlite; details.use names the function and the import.',
  },
  ENGINE_NOT_OFFERED: {
    class: 'UsageError',
    retryable: false,
    what: 'This database product cannot give what was asked for, so that it would protect nothing; nothing was sent.',
    next: 'See docs/mysql.md and docs/sqlite.md for what they offer, and what to use instead.',
  },
  ENGINE_SEVERAL_PRIMARIES: {
    class: 'DriverError',
    retryable: false,
    what: 'Several servers of this cluster take writes (Galera, or group replication with several primaries), and locks of one are not seen by the others.',
    next: 'Use a server with one primary: group replication in single-primary mode, or replication without Galera.',
  },
  ENGINE_TABLE_UNFIT: {
    class: 'DriverError',
    retryable: false,
    what: 'The table cannot be locked until COMMIT, or is not made as migrate() makes it; nothing was locked.',
    next: 'Use ENGINE=InnoDB, no view and no temporary table; for the table of Holdfast drop it and call migrate(driver) of holdfast/mysql.',
  },
  ENGINE_FILE_UNFIT: {
    class: 'DriverError',
    retryable: false,
    what: 'This SQLite database cannot be locked between connections as it is opened; nothing was locked.',
    next: 'Open a file on a local disk for writing, and set PRAGMA journal_mode = WAL on it once; details.subject says what is wrong.',
  },
  ENGINE_VERSION: {
    class: 'DriverError',
    retryable: false,
    what: 'The server is older than what Holdfast was tested with, or does not say its version.',
    next: 'Use MariaDB 10.11 or newer, MySQL 8.4 or newer, or SQLite 3.42 or newer.',
  },
  SELF_TEST_INCONCLUSIVE: {
    class: 'DriverError',
    retryable: true,
    what: 'The start-up self-test could not get two connections at once.',
    next: 'Give the pool at least two connections, or run the self-test through a pool that has.',
  },
  SCHEMA_NEWER: {
    class: 'SchemaError',
    retryable: false,
    what: 'The schema was installed by a later version of Holdfast than this one; nothing was changed.',
    next: 'Deploy the later version here as well, or leave migrating to the process that has it.',
  },
  SCHEMA_CHECKSUM: {
    class: 'SchemaError',
    retryable: false,
    what: 'A migration that was applied to this database is not the one this version has; nothing was changed.',
    next: 'Install the released package again: its migrations never change. If the database was made by a development version, install into a new schema.',
  },
  SCHEMA_OCCUPIED: {
    class: 'SchemaError',
    retryable: false,
    what: 'The schema exists, was not made by Holdfast, and is not empty.',
    next: 'Choose another name with the schema option: Holdfast takes rights away in its schema, so it shares it with nobody.',
  },
  SCHEMA_FILES_MISSING: {
    class: 'SchemaError',
    retryable: false,
    what: 'There is nothing to install: the SQL files are not there.',
    next: 'Install the holdfast package again. They are part of its JavaScript; if a bundler or a plugin rewrote it, leave the package out of the bundle.',
  },
  SCHEMA_FAILED: {
    class: 'SchemaError',
    retryable: false,
    what: 'PostgreSQL refused a statement of this file; everything was rolled back.',
    next: 'If it is about rights, the role needs CREATE on the database, or must own the schema and everything in it. Any other reason is in the error of PostgreSQL (cause). `holdfast doctor` lists what belongs to others, and tables and types that have disappeared: restore their rows from a backup.',
  },
  SCHEMA_MISSING: {
    class: 'SchemaError',
    retryable: false,
    what: 'The schema of Holdfast is not installed in this database, or this role may not use what it asked for.',
    next: 'If it is not installed, run `holdfast migrate` of @holdfast/cli; on SQLite call migrate(driver). If the role lacks a right, run what `holdfast grants` prints for it; audit and upkeep are for the owner. If it has another name, pass schema to createHoldfast (on MariaDB and MySQL: database).',
  },
  LEASE_NAME_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'The name or scope of a lease cannot be stored exactly as it is.',
    next: 'Pass a text of 1 to 512 bytes without NUL; details.field names it.',
  },
  LEASE_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'The lease was not free within the limit.',
    next: 'Try again later or raise wait; leases.read() tells until when it is held, and the note of who holds it.',
  },
  LEASE_LOST: {
    class: 'LostError',
    retryable: false,
    what: 'The lease is no longer held: it expired, was released, or somebody else has it.',
    next: 'Stop the work that relied on it and let its transaction roll back; details.reason says why. Acquire it again to go on.',
  },
  LEASE_TERM_LEFT: {
    class: 'LostError',
    retryable: false,
    what: 'The leader had to stop, and its body did not end in time. The body was left behind, and the lease is not renewed any more.',
    next: 'Let the body heed the signal of its term, or raise leaveAfter; end the process. Somebody else leads as soon as the lease is over, and guarded writes of the old body are refused from then on.',
  },
  LEASE_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'The fence was to be checked outside a transaction, where nothing keeps it true for the write.',
    next: 'Pass the transaction handle in which the protected write is made.',
  },
  LEASE_SESSION_POOLED: {
    class: 'DriverError',
    retryable: false,
    what: 'A lock that lives in a session was asked for through a pooler, which gives the session to others.',
    next: 'Give the election a pool that connects straight to the server, or leave out session: leases work behind poolers.',
  },
  CLAIM_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'Rows were to be claimed or finished in a transaction, but the handle is not inside one.',
    next: 'Pass the transaction handle your client gave you, or no handle at all: then the call is a transaction of its own.',
  },
  CLAIM_STALE_SNAPSHOT: {
    class: 'UsageError',
    retryable: false,
    what: 'At REPEATABLE READ and SERIALIZABLE a claim sees rows that others have claimed since, and fails on them.',
    next: 'Claim in a transaction at READ COMMITTED, or without a handle. Completing is safe at every level.',
  },
  CLAIM_LOST: {
    class: 'LostError',
    retryable: false,
    what: 'The lease of the claim was over, so the row may be worked on by somebody else.',
    next: 'Roll back what belongs to it and stop; the row is tried again by whoever has it. Choose a longer lease if handlers block the event loop.',
  },
  CLAIM_STOPPED: {
    class: 'ContentionError',
    retryable: true,
    what: 'The worker is stopping and did not wait for this handler any longer.',
    next: 'Stop soon and reject; the row is given back without counting the attempt. A handler that goes on is left behind, and its row comes back when its lease is over. Give stop() more time if handlers need it.',
  },
  CLAIM_TABLE_UNFIT: {
    class: 'SchemaError',
    retryable: false,
    what: 'The table does not have what the claims over it need, or does not let this role use it.',
    next: 'Look at details.findings, which say what to change; claims.check() lists them too.',
  },
  SCHEDULE_TICK_LOST: {
    class: 'LostError',
    retryable: false,
    what: 'The tick is no longer ours: its lease could not be renewed in time, or somebody else has taken it.',
    next: 'Stop the work; under at-least-once another process does it again. Raise lease if the event loop stalls or the database is slow.',
  },
  SCHEDULE_STOPPED: {
    class: 'ContentionError',
    retryable: true,
    what: 'The schedule is being stopped and did not wait for this handler any longer.',
    next: 'Stop soon and reject; the tick has then failed, and is tried again elsewhere as its schedule says. A handler that goes on is left behind, and its tick is taken over when its lease is over. Give stop() more time if handlers need it.',
  },
  SCHEDULE_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'A tick of the schedule was at work in a transaction for longer than the call waits; nothing was changed.',
    next: 'Call again when it has ended, or raise wait.',
  },
  SCHEDULE_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'A tick was to be guarded outside a transaction, where nothing keeps it ours for the write.',
    next: 'Pass the transaction handle in which the protected write is made.',
  },
  SCHEDULE_TOO_EARLY: {
    class: 'RefusedError',
    retryable: false,
    what: "The scheduled instant lies more than a minute ahead of the database's clock, so that no tick was taken.",
    next: 'Pass the scheduled time that the platform sent, in milliseconds or as ISO 8601; check the clock of the database.',
  },
  ONCE_TIMEOUT: {
    class: 'ContentionError',
    retryable: true,
    what: 'The same key is being worked on by somebody else, and that took longer than the call waits.',
    next: 'See blockers for who is at it. Call again for its result, or raise wait.',
  },
  ONCE_KEY_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'A key or scope cannot be stored exactly as it is.',
    next: 'Pass a text of 1 to 512 bytes without NUL; details.field names it.',
  },
  ONCE_OUTSIDE_TRANSACTION: {
    class: 'UsageError',
    retryable: false,
    what: 'The handle is not inside a transaction, so that work and memory of it could not commit together.',
    next: 'Pass the transaction handle your client gave you, or no handle at all: then the work is a transaction of its own.',
  },
  ONCE_RESULT_INVALID: {
    class: 'UsageError',
    retryable: false,
    what: 'What the body returned cannot be stored as JSON; nothing was changed.',
    next: 'Return plain data: no bigint, no cycle. Nothing at all is fine too.',
  },
} as const

/** Stable string codes: adding one is a minor change, changing or removing one a major change. */
export type ErrorCode =
  | keyof typeof otherCodes
  | keyof typeof transactionCodes
  | keyof typeof connectionCodes
  | keyof typeof ledgerCodes
  | keyof typeof rateLimitCodes
  | keyof typeof shardCodes
  | keyof typeof moveCodes
  | keyof typeof observeCodes

/** The table itself, for documentation and tooling. */
export const errorCodes: Readonly<Record<ErrorCode, ErrorEntry>> = {
  ...otherCodes,
  ...transactionCodes,
  ...connectionCodes,
  ...ledgerCodes,
  ...rateLimitCodes,
  ...shardCodes,
  ...moveCodes,
  ...observeCodes,
}
