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
import type { Driver, Row } from './core/driver.ts'
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
import { createTransactions, type Transactions } from './tx/index.ts'

export type { Driver, Isolation } from './core/driver.ts'
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
  type KeyPart,
  type LockKey,
  type LockNamespace,
  legacyKey,
  lockKey,
  lockNamespace,
  lockNamespaces,
  shared,
} from './locks/index.ts'

/** Settings of a Holdfast. */
export interface HoldfastOptions {
  readonly locks?: LockOptions
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
  const tx = createTransactions(driver)
  const locks = createLocks(driver, options.locks)
  const rows = createRows(driver, options.rows)
  const kernel = createKernel(driver, options.ledger)
  return {
    tx,
    locks,
    rows,
    ledger: createLedger(kernel),
    leases: createLeases(driver, options.leases),
    leader: (leaderOptions) => createLeader(driver, leaderOptions, options.leases),
    schedule: (scheduleOptions) => createSchedule(driver, scheduleOptions, options.schedule),
    once: createOnce(driver, options.once),
    quota: (quotaOptions) => createQuota(kernel, quotaOptions),
    credits: (creditsOptions) => createCredits(kernel, creditsOptions),
    stock: (stockOptions) => createStock(kernel, stockOptions),
    claims: ((claimsOptions: ClaimsOptions) =>
      createClaims(driver, claimsOptions)) as Holdfast<Tx>['claims'],
    work: (workOptions) => createWork(driver, workOptions),
    guard: locks.guard,
    transaction: tx.run,
  }
}
