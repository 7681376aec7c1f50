import {
  type Claims,
  type ClaimsOptions,
  createClaims,
  createWork,
  type TransactionClaims,
  type TransactionClaimsOptions,
  type Work,
  type WorkOptions,
} from './claims/index.ts'
import { Closing, type Closed } from './closing.ts'
import type { Driver, Row } from './core/driver.ts'
import type { StopOptions } from './core/stopping.ts'
import { createCredits, type Credits, type CreditsOptions } from './credits/index.ts'
import { createKernel, createLedger, type Ledger, type LedgerOptions } from './ledger/index.ts'
import {
  createLeader,
  createLeases,
  type Leader,
  type LeaderOptions,
  type Leases,
  type LeasesOptions,
} from './leases/index.ts'
import { createLocks, type LockOptions, type Locks } from './locks/index.ts'
import {
  createObserver,
  type Observer,
  type ObserverOptions,
  type Recorder,
  type RecorderOptions,
  startRecorder,
} from './observe/index.ts'
import { createQuota, type Quota, type QuotaOptions } from './quota/index.ts'
import type { AmountKind, AmountOf } from './ledger/book.ts'
import { createOnce, type Once, type OnceRoomOptions } from './once/index.ts'
import { createRows, type Rows, type RowsOptions } from './rows/index.ts'
import {
  createSchedule,
  type Schedule,
  type ScheduleOptions,
  type ScheduleRoomOptions,
} from './schedule/index.ts'
import { createStock, type Stock, type StockOptions } from './stock/index.ts'
import { createTransactions, type ResolveOptions, type Transactions } from './tx/index.ts'

export type { Closed, LeftBehind } from './closing.ts'
export type { Driver, Isolation } from './core/driver.ts'
export type { Stopped, StopOptions } from './core/stopping.ts'
export { type CircuitOptions, withCircuit } from './drivers/circuit.ts'
export { hearNotice } from './drivers/sync-wait.ts'
export * from './errors.ts'
export type {
  Accepted,
  Balance,
  HoldState,
  LineVerdict,
  Refusal,
  Refused,
  Verdict,
} from './ledger/verdict.ts'
export {
  inScope,
  type KeyPart,
  type LockKey,
  type LockNamespace,
  legacyKey,
  lockKey,
  lockNamespace,
  lockNamespaces,
  shared,
} from './locks/index.ts'

/** Settings of a Holdfast. Those of a room win over `resolveFor`, which holds for all. */
export interface HoldfastOptions extends ResolveOptions {
  readonly locks?: LockOptions
  readonly observe?: ObserverOptions
  readonly rows?: RowsOptions
  readonly ledger?: LedgerOptions
  readonly leases?: LeasesOptions
  readonly once?: OnceRoomOptions
  readonly schedule?: ScheduleRoomOptions
}

/** All rooms over one client. */
export interface Holdfast<Tx> {
  readonly tx: Transactions<Tx>
  readonly locks: Locks<Tx>
  /** Looks at the database: who blocks whom, by name, and how everything else stands. */
  readonly observe: Observer & {
    /**
     * Begins to write down, behind the work of this process, what its locks are called and how they are
     * used, so that others see it: the console, the command line, another process.
     *
     * @example await using recorder = await hf.observe.record()
     * @throws SCHEMA_MISSING, OBSERVE_RECORDING, OPTION_INVALID, TX_NESTED
     */
    record(options?: RecorderOptions): Promise<Recorder>
  }
  readonly rows: Rows<Tx>
  /** What spans several books of the ledger. */
  readonly ledger: Ledger<Tx>
  /** Exclusion that outlives a transaction, with a fence for those who lost it. */
  readonly leases: Leases<Tx>
  /** A candidate for leadership: one of all that have this name leads. */
  leader(options: LeaderOptions): Leader<Tx>
  /** Declares a schedule: each of its ticks runs once, however many processes it is started in. */
  schedule(options: ScheduleOptions<Tx>): Schedule
  /** Runs work once per key, and gives every duplicate the stored result. */
  readonly once: Once<Tx>
  /** Declares a quota: `used + cost <= limit`. */
  quota<K extends AmountKind = 'number'>(options: QuotaOptions<K>): Quota<Tx, AmountOf<K>>
  /** Declares a book of credits: grants with priority and expiry, spent in order. */
  credits<K extends AmountKind = 'number'>(options: CreditsOptions<K>): Credits<Tx, AmountOf<K>>
  /** Declares a stock: never below zero, only through movements. */
  stock<K extends AmountKind = 'number', L extends string = string>(
    options: StockOptions<K, L>,
  ): Stock<Tx, AmountOf<K>, L>
  /** Declares claims over a table of yours, each for the length of one transaction of yours. */
  claims<R = Row>(options: TransactionClaimsOptions): TransactionClaims<Tx, R>
  /** Declares claims over a table of yours, with a lease and a token. */
  claims<R = Row>(options: ClaimsOptions): Claims<Tx, R>
  /** Declares a queue in the table that Holdfast brings along. */
  work<P = unknown>(options: WorkOptions): Work<Tx, P>
  /** Same as `locks.guard`: open a transaction, take the locks, run the body, commit. */
  readonly guard: Locks<Tx>['guard']
  /** Same as `tx.run`: open a transaction, run the body, commit, retry what may be retried. */
  readonly transaction: Transactions<Tx>['run']
  /**
   * Ends what runs in this process: workers, schedules, leaders, sweepers and recorders stop; transactions,
   * operations of the ledger and bodies under a hold may end; leases are released. What does not end in
   * time is told, and what it holds in the database ends by itself. Your pool is yours to end afterwards.
   *
   * @example
   * process.once('SIGTERM', async () => {
   *   const { left } = await hf.close({ within: '20 s' })
   *   await pool.end()
   *   process.exit(left.length === 0 ? 0 : 1)
   * })
   */
  close(options?: StopOptions): Promise<Closed>
}

/**
 * Everything Holdfast does, over the client a project already has. Opens no connection and changes
 * nothing until a method is called.
 *
 * @example
 * const hf = createHoldfast(fromPrisma(prisma))
 * await hf.guard(lockKey('image-upload', userId), async (tx) => { …check, then write… })
 */
export function createHoldfast<Tx>(
  driver: Driver<Tx>,
  options: HoldfastOptions = {},
): Holdfast<Tx> {
  const { resolveFor = '10 s' } = options
  const closing = new Closing()
  const transaction = closing.waited('transaction', createTransactions(driver).run)
  const locks = createLocks(driver, options.locks)
  const guard = closing.waited('transaction', locks.guard)
  const kernel = createKernel(driver, { resolveFor, ...options.ledger })
  closing.counted('operation', kernel.underWay)
  const ledger = createLedger(kernel)
  const leases = createLeases(driver, { resolveFor, ...options.leases })
  const once = createOnce(driver, { resolveFor, ...options.once })
  return {
    tx: { run: transaction },
    locks: { ...locks, guard },
    observe: {
      ...createObserver(driver, options.observe),
      record: async (recorderOptions) =>
        closing.running(
          'recorder',
          '',
          await startRecorder(driver, { ...options.observe, ...recorderOptions }),
        ),
    },
    rows: createRows(driver, options.rows),
    ledger: {
      ...ledger,
      startSweeper: (sweeping) => closing.running('sweeper', '', ledger.startSweeper(sweeping)),
    },
    leases: {
      ...leases,
      acquire: async (name, wanted) => closing.lease(await leases.acquire(name, wanted)),
      tryAcquire: async (name, wanted) => closing.lease(await leases.tryAcquire(name, wanted)),
    },
    leader: (wanted) => closing.leading(wanted.name, createLeader(driver, wanted, options.leases)),
    schedule(wanted) {
      const schedule = createSchedule(driver, wanted, { resolveFor, ...options.schedule })
      return {
        ...schedule,
        start: () => closing.running('schedule', wanted.name, schedule.start()),
      }
    },
    once: Object.assign(closing.waited('transaction', once), { forget: once.forget }) as Once<Tx>,
    quota: (wanted) => closing.holding(wanted.name, createQuota(kernel, wanted)),
    credits: (wanted) => closing.holding(wanted.name, createCredits(kernel, wanted)),
    stock: (wanted) => createStock(kernel, wanted),
    claims: ((wanted: ClaimsOptions) =>
      closing.claims(
        tableNameOf(wanted),
        createClaims(driver, { resolveFor, ...wanted }),
      )) as Holdfast<Tx>['claims'],
    work: (wanted) => closing.claims(wanted.queue, createWork(driver, { resolveFor, ...wanted })),
    guard,
    transaction,
    close: (stopping) => closing.close(stopping),
  }
}

function tableNameOf({ table }: ClaimsOptions): string {
  return typeof table === 'string' ? table : table.table
}
