/** `holdfast/sqlite`: transactions, locks, updates by version, leases, claims, work that is done once, and schedules, on SQLite. */
import { type Claims, claimsOver } from './claims/claims.ts'
import type {
  ClaimsOptions as AnyClaimsOptions,
  TransactionClaimsOptions as AnyTransactionClaimsOptions,
} from './claims/layout.ts'
import type { TransactionClaims } from './claims/taking.ts'
import { Closing, type Closed, type Marks } from './closing.ts'
import type { Subject } from './core/activity.ts'
import { assertDriver } from './core/client-kind.ts'
import { type KnownOptions, optionsGiven } from './core/options/known-options.ts'
import type { Row } from './core/driver.ts'
import type { StopOptions } from './core/options/stopping.ts'
import { defaultWait, type Wait } from './core/options/wait.ts'
import { withShared } from './core/options/with-shared.ts'
import type { SqliteDriver } from './engines/sqlite/driver.ts'
import { sqliteClaims } from './engines/sqlite/claims/claims-engine.ts'
import { sqliteLeases } from './engines/sqlite/leases/lease-calls.ts'
import { sqliteLocks } from './engines/sqlite/locks/taking.ts'
import { sqliteOnce } from './engines/sqlite/once/once-keys.ts'
import { sqliteRows } from './engines/sqlite/rows/row-engine.ts'
import { sqliteSchedules } from './engines/sqlite/schedule/tick-board.ts'
import { createTablesOn } from './engines/sqlite/schema/create-tables.ts'
import { type Leader, type LeaderOptions as AnyLeaderOptions, leaderOver } from './leases/leader.ts'
import { type Leases, leasesOver } from './leases/leases.ts'
import { type LockOptions, lockOptions, type Locks, locksOver } from './locks/locks.ts'
import {
  type OnceRoomOptions as AnyOnceOptions,
  type Once,
  onceOver,
  onceRoomOptions,
} from './once/once.ts'
import { type Rows, type RowsOptions, rowsOptions, rowsOver } from './rows/rows.ts'
import type { ScheduleOptions } from './schedule/options.ts'
import { type Schedule, scheduleOver } from './schedule/schedule.ts'
import {
  createTransactions,
  type ResolveOptions,
  type Transactions,
  type TxOptions,
} from './tx/index.ts'
import { resolveOptions } from './tx/ask-again.ts'
import { txOptions } from './tx/run-options.ts'

export type { Claim, FailOutcome, Outcome } from './claims/claim.ts'
export type { Claims } from './claims/claims.ts'
export type {
  DeadKeys,
  DeadOptions,
  DeadOutcome,
  DeadPage,
  DeadRow,
  DeadRows,
} from './claims/dead.ts'
export type { ColumnValue, PriorityColumn } from './claims/engine.ts'
export type { BackoffOptions, ClaimColumns, ClaimValues, PerKeyOptions } from './claims/layout.ts'
export type { FailOptions } from './claims/lease-claims.ts'
export type { Recovered } from './claims/engine.ts'
export type { HandlerContext, PaceOptions, RunOptions, Worker } from './claims/run-options.ts'
export type { Taken, TransactionClaims } from './claims/taking.ts'
export type { Closed, LeftBehind } from './closing.ts'
export type { ClaimFinding } from './core/errors/error-details.ts'
export type { Driver, Isolation } from './core/driver.ts'
export type { Duration } from './core/options/duration.ts'
export { lockKey } from './core/locks/lock-key.ts'
export type { KeyPart, LockKey } from './core/locks/wanted-lock.ts'
export { type LockNamespace, lockNamespace, lockNamespaces } from './core/locks/lock-namespace.ts'
export type { StopOptions } from './core/options/stopping.ts'
export type { Wait } from './core/options/wait.ts'
export type { SqliteDriver, SqliteTransaction } from './engines/sqlite/driver.ts'
export * from './errors.ts'
export type { Leader, LeadOptions, Term } from './leases/leader.ts'
export type { LeaseReading } from './leases/engine.ts'
export type { Lease } from './leases/lease.ts'
export type { LeaseOptions } from './leases/lease-terms.ts'
export type { AcquireLeaseOptions, Leases } from './leases/leases.ts'
export type { JsonOf } from './once/json-of.ts'
export type { Once, OnceAnswer, OnceDone, OnceRefused } from './once/once.ts'
export type { OnceOptions } from './once/call.ts'
export type { HistoryTick } from './schedule/engine.ts'
export type {
  AtLeastOnce,
  AtMostOnce,
  LeasedTick,
  Missed,
  Overlap,
  ScheduleOptions,
  Tick,
  Transactional,
} from './schedule/options.ts'
export type { TickOutcome } from './schedule/attempt.ts'
export type { When } from './schedule/rule.ts'
export type { RunningSchedule } from './schedule/runner.ts'
export type { Schedule, TickHistoryOptions } from './schedule/schedule.ts'
export type { TryGuarded } from './locks/locks.ts'

/** Settings of a Holdfast on SQLite. Those of a part win over `wait` and `tx`, which hold for all. */
export interface HoldfastOptions extends ResolveOptions {
  /** How long calls wait for the right to write that do not say so themselves. @defaultValue '2 s' */
  readonly wait?: Wait
  /** Defaults of the transactions that Holdfast opens. */
  readonly tx?: TxOptions
  readonly locks?: LockOptions
  readonly rows?: RowsOptions
  readonly leases?: ResolveOptions
  readonly once?: OnceRoomOptions
  readonly schedule?: ResolveOptions
}

/** Settings of work that is done once. */
export type OnceRoomOptions = Omit<AnyOnceOptions, 'schema'>

/** Settings of an election. By lease: SQLite has no lock that a session could hold. */
export type LeaderOptions = Omit<AnyLeaderOptions, 'session'>

/** A table whose rows are claimed with a lease. Of several primaries there is no bucket here. */
export type ClaimsOptions = Omit<AnyClaimsOptions, 'bucket'>

/** A table whose rows are claimed, worked on and finished in one transaction of the caller's. */
export type TransactionClaimsOptions = Omit<AnyTransactionClaimsOptions, 'bucket'>

/** What Holdfast does on SQLite; see docs/sqlite.md for what it does not. */
export interface Holdfast<Tx> {
  readonly tx: Transactions<Tx>
  readonly locks: Locks<Tx>
  /** Without locks of rows and tables: `guard` locks the whole file. */
  readonly rows: Pick<Rows<Tx>, 'updateVersioned' | 'optimistic' | 'withVersionCheck'>
  /** Exclusion that outlives a transaction, with a fence for those who lost it. Timed by the machine's clock. */
  readonly leases: Leases<Tx>
  /** Declares claims over a table of yours, each for the length of one transaction of yours. */
  claims<R = Row>(options: TransactionClaimsOptions): TransactionClaims<Tx, R>
  /** Declares claims over a table of yours, with a lease and a token. */
  claims<R = Row>(options: ClaimsOptions): Claims<Tx, R>
  /** A candidate for leadership: one of all that have this name leads. */
  leader(options: LeaderOptions): Leader<Tx>
  /** Declares a schedule: each of its ticks runs once, however many processes it is started in. */
  schedule(options: ScheduleOptions<Tx>): Schedule
  /** Runs work once per key, and gives every duplicate the stored result. */
  readonly once: Once<Tx>
  /** Same as `locks.guard`: wait until nobody else writes, run the body in a transaction, commit. */
  readonly guard: Locks<Tx>['guard']
  /** Same as `locks.tryGuard`: the same if nobody else writes, and no waiting. */
  readonly tryGuard: Locks<Tx>['tryGuard']
  /** Same as `tx.run`: wait until nobody else writes, run the body in a transaction, commit. */
  readonly transaction: Transactions<Tx>['run']
  /**
   * Ends what runs in this process: leaders and schedules stop, calls that are under way may end, leases are released. What
   * does not end in time is reported. New calls are refused with HOLDFAST_CLOSED. Close the driver yourself afterwards.
   */
  close(options?: StopOptions): Promise<Closed>
}

/**
 * Holdfast over a client of SQLite. Opens no connection and changes nothing until a method is called.
 *
 * @example
 * const hf = createHoldfast(fromNodeSqlite(() => new DatabaseSync('app.db')))
 * await hf.guard(lockKey('image-upload', userId), async (tx) => { …check, then write… })
 * @throws ENGINE_MISMATCH, DRIVER_HANDLE_INVALID, OPTION_INVALID
 */
export function createHoldfast<Tx>(
  driver: SqliteDriver<Tx>,
  given: HoldfastOptions = {},
): Holdfast<Tx> {
  assertDriver(driver, 'createHoldfast of holdfast/sqlite', 'sqlite')
  const options = optionsGiven(given, holdfastOptions)
  const { resolveFor = '10 s', wait = defaultWait, tx: txDefaults = {} } = options
  const shared = { tx: txDefaults, wait }
  const closing = new Closing()
  const tx = closing.face(createTransactions(driver, txDefaults), transaction)
  const locks = closing.face(
    locksOver(sqliteLocks, driver, withShared(shared, options.locks)),
    calls('locks'),
    { guard: transaction, tryGuard: transaction },
  )
  const { updateVersioned, optimistic, withVersionCheck } = closing.face(
    rowsOver(sqliteRows, driver, withShared(shared, options.rows)),
    calls('rows'),
    { optimistic: transaction, withVersionCheck: transaction },
  )
  const resolving = (of: ResolveOptions | undefined): ResolveOptions =>
    withShared({ resolveFor }, of)
  return {
    tx,
    locks,
    rows: { updateVersioned, optimistic, withVersionCheck },
    leases: closing.face(
      leasesOver(sqliteLeases, driver, resolving(options.leases)),
      calls('leases'),
      { acquire: 'lease', tryAcquire: 'lease' },
    ),
    claims: ((wanted: ClaimsOptions) => {
      // One that is claimed in the caller's transaction has no answers to ask for again.
      const isJoined = (wanted as { mode?: unknown } | undefined)?.mode === 'transaction'
      const claims = claimsOver<Tx, Row>(
        sqliteClaims,
        driver,
        isJoined ? wanted : withShared<ClaimsOptions>({ resolveFor }, wanted),
      )
      const { table } = wanted
      return closing.face(claims, calls('claims'), {
        ...ofClaims,
        run: {
          what: 'worker',
          name: typeof table === 'string' ? table : table.table,
          mark: 'runner',
        },
      } as Marks<typeof claims>)
    }) as Holdfast<Tx>['claims'],
    leader: (wanted) =>
      closing.face(leaderOver(sqliteLeases, driver, wanted, { schema }), {
        what: 'leader',
        name: wanted.name,
      }),
    schedule: (wanted) =>
      closing.face(
        scheduleOver(sqliteSchedules, driver, wanted, resolving(options.schedule)),
        { what: 'schedule', name: wanted.name },
        { start: 'runner-now' },
      ),
    once: closing.face(
      onceOver(sqliteOnce, driver, withShared({ ...shared, resolveFor }, options.once)),
      transaction,
      { forget: { what: 'call', name: 'once.forget' } },
    ),
    guard: locks.guard,
    tryGuard: locks.tryGuard,
    transaction: tx.run,
    close: (stopping) => closing.close(stopping),
  }
}

/**
 * Makes the tables of Holdfast that are missing. Safe to run at every start, and by several processes at once.
 *
 * @example await migrate(fromNodeSqlite(() => new DatabaseSync('app.db')))
 * @throws ENGINE_FILE_UNFIT, ENGINE_VERSION, ENGINE_MISMATCH, LOCK_TIMEOUT
 */
export async function migrate<Tx>(driver: SqliteDriver<Tx>): Promise<void> {
  assertDriver(driver, 'migrate of holdfast/sqlite', 'sqlite')
  await createTablesOn(driver)
}

const { schema: _, ...ofOnce } = onceRoomOptions

const holdfastOptions: KnownOptions<HoldfastOptions> = {
  ...resolveOptions,
  wait: 'checked',
  tx: txOptions,
  locks: lockOptions,
  rows: rowsOptions,
  leases: resolveOptions,
  once: ofOnce,
  schedule: resolveOptions,
}

/** Of PostgreSQL; a file has none. */
const schema = 'holdfast'

const ofClaims: Marks<Claims<never, unknown>> & Marks<TransactionClaims<never, unknown>> = {
  heartbeat: 'finish',
  complete: 'finish',
  fail: 'finish',
  release: 'finish',
  finish: 'finish',
}

const transaction: Subject = { what: 'transaction', name: '' }

/** Methods that are called by the name of their room and their own. */
function calls(room: string): Subject {
  return { what: 'call', name: room }
}
