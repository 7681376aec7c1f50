/** `holdfast/mysql`: transactions, locks, claims, leases, work that is done once, and schedules, on MariaDB and MySQL. */
import { claimsOver } from './claims/claims.ts'
import type { TransactionClaims } from './claims/taking.ts'
import { Closing, type Closed, type Marks } from './closing.ts'
import type { Subject } from './core/activity.ts'
import { assertDriver } from './core/client-kind.ts'
import { type KnownOptions, optionsGiven } from './core/options/known-options.ts'
import type { Row } from './core/driver.ts'
import type { StopOptions } from './core/options/stopping.ts'
import { defaultWait, type Wait } from './core/options/wait.ts'
import { withShared } from './core/options/with-shared.ts'
import { innodbClaims } from './engines/innodb/claims/claims-engine.ts'
import type { InnodbDriver } from './engines/innodb/driver.ts'
import { innodbLeases } from './engines/innodb/leases/lease-calls.ts'
import { innodbLocks } from './engines/innodb/locks/taking.ts'
import { innodbOnce } from './engines/innodb/once/once-keys.ts'
import { innodbRows } from './engines/innodb/rows/row-engine.ts'
import { innodbSchedules } from './engines/innodb/schedule/tick-board.ts'
import { createTablesOn } from './engines/innodb/schema/create-tables.ts'
import { type Leader, type LeaderOptions as AnyLeaderOptions, leaderOver } from './leases/leader.ts'
import { type Leases, leasesOver } from './leases/leases.ts'
import { type LockOptions, lockOptions, locksOver } from './locks/locks.ts'
import {
  type OnceRoomOptions as AnyOnceOptions,
  type Once,
  onceOver,
  onceRoomOptions,
} from './once/once.ts'
import { type RowsOptions, rowsOptions, rowsOver } from './rows/rows.ts'
import type {
  Claims,
  ClaimsOptions,
  Locks,
  Rows,
  TransactionClaimsOptions,
  Transactions,
} from './mysql-calls.ts'
import {
  createObserver,
  type Observer,
  observerOptions,
  type ObserverOptions,
} from './mysql-observe.ts'
import type { ScheduleOptions } from './schedule/options.ts'
import { type Schedule, scheduleOver } from './schedule/schedule.ts'
import { createTransactions, type ResolveOptions, type TxOptions } from './tx/index.ts'
import { resolveOptions } from './tx/ask-again.ts'
import { txOptions } from './tx/run-options.ts'

export type { Claim, FailOutcome, Outcome } from './claims/claim.ts'
export type {
  DeadKeys,
  DeadOptions,
  DeadOutcome,
  DeadPage,
  DeadRow,
  DeadRows,
} from './claims/dead.ts'
export type { ColumnValue, PriorityColumn } from './claims/engine.ts'
export type { BackoffOptions, ClaimColumns, ClaimValues } from './claims/layout.ts'
export type { FailOptions } from './claims/lease-claims.ts'
export type { Recovered } from './claims/engine.ts'
export type {
  HandlerContext,
  PaceOptions,
  RowHandler,
  TransactionHandler,
  Worker,
} from './claims/run-options.ts'
export type { Taken, TransactionClaims } from './claims/taking.ts'
export type { Closed, LeftBehind } from './closing.ts'
export type { ClaimFinding } from './core/errors/error-details.ts'
export type { Driver, Isolation } from './core/driver.ts'
export type { Duration } from './core/options/duration.ts'
export { lockKey } from './core/locks/lock-key.ts'
export type { KeyPart, LockKey } from './core/locks/wanted-lock.ts'
export { type LockNamespace, lockNamespace, lockNamespaces } from './core/locks/lock-namespace.ts'
export type { Stopped, StopOptions } from './core/options/stopping.ts'
export type { TableName } from './core/table-name.ts'
export type { Wait } from './core/options/wait.ts'
export type { InnodbDriver, InnodbTransaction } from './engines/innodb/driver.ts'
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
export type { LongestTransactions, SessionSeen } from './blocking/blocking.ts'
export { type Branch, lockBranches } from './blocking/branches.ts'
export type * from './blocking/model.ts'
export { examine, type HealthLimits, type HealthOptions } from './health/innodb.ts'
export type { HealthCode, HealthFinding, HealthGroup, Severity } from './health/finding.ts'
export type { QueuedKey } from './core/locks/key-queues.ts'
export {
  createInterventions,
  createObserver,
  type InterventionOptions,
  type Interventions,
  type Observer,
  type ObserverOptions,
} from './mysql-observe.ts'
export type {
  Claims,
  ClaimsOptions,
  Locks,
  Rows,
  RunOptions,
  Settable,
  TransactionClaimsOptions,
  Transactions,
} from './mysql-calls.ts'

/** Settings of a Holdfast on MariaDB or MySQL. Those of a part win over `wait` and `tx`, which hold for all. */
export interface HoldfastOptions extends ResolveOptions {
  /** The database that the tables of Holdfast are in. @defaultValue the one that the connections have chosen */
  readonly database?: string
  /** How long calls wait for somebody else's lock that do not say so themselves. @defaultValue '2 s' */
  readonly wait?: Wait
  /** Defaults of the transactions that Holdfast opens. */
  readonly tx?: TxOptions
  readonly locks?: LockOptions
  readonly rows?: RowsOptions
  readonly leases?: ResolveOptions
  readonly once?: OnceRoomOptions
  readonly schedule?: ResolveOptions
  readonly observe?: Omit<ObserverOptions, 'database'>
}

/** Settings of work that is done once. */
export type OnceRoomOptions = Omit<AnyOnceOptions, 'schema'>

/** Settings of an election. By lease: a session's lock outlives transactions and goes through pools. */
export type LeaderOptions = Omit<AnyLeaderOptions, 'session'>

/** What Holdfast does on MariaDB and MySQL; see docs/mysql.md for what it does not. */
export interface Holdfast<Tx> {
  readonly tx: Transactions<Tx>
  readonly locks: Locks<Tx>
  readonly rows: Rows<Tx>
  /** Declares claims over a table of yours, each for the length of one transaction of yours. */
  claims<R = Row>(options: TransactionClaimsOptions): TransactionClaims<Tx, R>
  /** Declares claims over a table of yours, with a lease and a token. */
  claims<R = Row>(options: ClaimsOptions): Claims<Tx, R>
  /** Exclusion that outlives a transaction, with a fence for those who lost it. */
  readonly leases: Leases<Tx>
  /** A candidate for leadership: one of all that have this name leads. */
  leader(options: LeaderOptions): Leader<Tx>
  /** Declares a schedule: each of its ticks runs once, however many processes it is started in. */
  schedule(options: ScheduleOptions<Tx>): Schedule
  /** Runs work once per key, and gives every duplicate the stored result. */
  readonly once: Once<Tx>
  /** Looks at the database: who blocks whom, by name. Changes nothing. */
  readonly observe: Observer
  /** Same as `locks.guard`: open a transaction, take the locks, run the body, commit. */
  readonly guard: Locks<Tx>['guard']
  /** Same as `locks.tryGuard`: the same if the locks are free, and no waiting. */
  readonly tryGuard: Locks<Tx>['tryGuard']
  /** Same as `tx.run`: open a transaction, run the body, commit, retry what may be retried. */
  readonly transaction: Transactions<Tx>['run']
  /**
   * Ends what runs in this process: leaders and schedules stop, calls that are under way may end, leases are released. What does not
   * end in time is reported. New calls are refused with HOLDFAST_CLOSED. End your pool yourself afterwards.
   */
  close(options?: StopOptions): Promise<Closed>
}

/**
 * Holdfast over a client of MariaDB or MySQL. Opens no connection and changes nothing until a method is called.
 *
 * @example
 * const hf = createHoldfast(fromMysql2(pool))
 * await hf.guard(lockKey('image-upload', userId), async (tx) => { …check, then write… })
 * @throws ENGINE_MISMATCH, DRIVER_HANDLE_INVALID, OPTION_INVALID
 */
export function createHoldfast<Tx>(
  driver: InnodbDriver<Tx>,
  given: HoldfastOptions = {},
): Holdfast<Tx> {
  assertDriver(driver, 'createHoldfast of holdfast/mysql', 'innodb')
  const options = optionsGiven(given, holdfastOptions)
  const { database, resolveFor = '10 s', wait = defaultWait, tx: txDefaults = {} } = options
  const shared = { tx: txDefaults, wait }
  const inDatabase = database === undefined ? {} : { database }
  const closing = new Closing()
  const tx = closing.face(createTransactions(driver, txDefaults), transaction)
  const locks = closing.face(
    locksOver(innodbLocks(database), driver, withShared(shared, options.locks)),
    calls('locks'),
    { guard: transaction, tryGuard: transaction },
  )
  const { lockTable: _, ...rows } = closing.face(
    rowsOver(innodbRows, driver, withShared(shared, options.rows)),
    calls('rows'),
    { optimistic: transaction, withVersionCheck: transaction },
  )
  const leasing = innodbLeases(database)
  const resolving = withShared({ resolveFor }, options.leases)
  return {
    tx,
    locks,
    rows,
    claims: ((wanted: ClaimsOptions) => {
      // One that is claimed in the caller's transaction has no answers to ask for again.
      const isTaken = (wanted as { mode?: unknown } | undefined)?.mode === 'transaction'
      const claims = claimsOver<Tx, unknown>(
        innodbClaims,
        driver,
        isTaken ? wanted : withShared({ resolveFor }, wanted),
      )
      const { table } = wanted
      const name = typeof table === 'string' ? table : table.table
      return closing.face(claims, calls(name), claimMarks(name) as Marks<typeof claims>)
    }) as Holdfast<Tx>['claims'],
    leases: closing.face(leasesOver(leasing, driver, resolving), calls('leases'), {
      acquire: 'lease',
      tryAcquire: 'lease',
    }),
    leader: (wanted) =>
      closing.face(leaderOver(leasing, driver, wanted, { schema }), {
        what: 'leader',
        name: wanted.name,
      }),
    schedule: (wanted) =>
      closing.face(
        scheduleOver(
          innodbSchedules(database),
          driver,
          wanted,
          withShared({ resolveFor }, options.schedule),
        ),
        { what: 'schedule', name: wanted.name },
        { start: 'runner-now' },
      ),
    once: closing.face(
      onceOver(
        innodbOnce(database),
        driver,
        withShared({ resolveFor, wait, tx: txDefaults }, options.once),
      ),
      transaction,
      { forget: { what: 'call', name: 'once.forget' } },
    ),
    observe: closing.face(
      createObserver(driver, withShared<ObserverOptions>(inDatabase, options.observe)),
      calls('observe'),
      { queues: 'plain' },
    ),
    guard: locks.guard,
    tryGuard: locks.tryGuard,
    transaction: tx.run,
    close: (stopping) => closing.close(stopping),
  }
}

/** Where tables of Holdfast are made. */
export interface MigrateOptions {
  /** @defaultValue the one that the connections have chosen */
  readonly database?: string
}

/**
 * Makes the tables that Holdfast needs, unless they are there. Safe to run at every start, by several processes at once,
 * and again after it was stopped. Its statements commit by themselves: call it outside of any transaction.
 *
 * @example await migrate(fromMysql2(pool))
 * @throws ENGINE_TABLE_UNFIT, ENGINE_VERSION, ENGINE_SEVERAL_PRIMARIES, ENGINE_MISMATCH
 */
export async function migrate<Tx>(
  driver: InnodbDriver<Tx>,
  given: MigrateOptions = {},
): Promise<void> {
  assertDriver(driver, 'migrate of holdfast/mysql', 'innodb')
  const { database } = optionsGiven(given, migrateOptions)
  await createTablesOn(driver, database)
}

const { schema: _, ...ofOnce } = onceRoomOptions

const holdfastOptions: KnownOptions<HoldfastOptions> = {
  ...resolveOptions,
  database: 'text',
  wait: 'checked',
  tx: txOptions,
  locks: lockOptions,
  rows: rowsOptions,
  leases: resolveOptions,
  once: ofOnce,
  schedule: resolveOptions,
  observe: { statementTimeoutMs: observerOptions.statementTimeoutMs },
}
const migrateOptions: KnownOptions<MigrateOptions> = { database: 'text' }

/** Of PostgreSQL; here it is a database, which engines are told. */
const schema = 'holdfast'

const transaction: Subject = { what: 'transaction', name: '' }

/** What is claimed may be finished while everything else ends. */
function claimMarks(name: string): Marks<Claims<unknown, unknown>> {
  const finishing = { heartbeat: 'finish', complete: 'finish', fail: 'finish', release: 'finish' }
  const marks = { ...finishing, finish: 'finish' }
  return { ...marks, run: { what: 'worker', name, mark: 'runner' } } as Marks<
    Claims<unknown, unknown>
  >
}

/** Methods that are called by the name of their room and their own. */
function calls(room: string): Subject {
  return { what: 'call', name: room }
}
