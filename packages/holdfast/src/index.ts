import type { Driver } from './core/driver.ts'
import { createCredits, type Credits, type CreditsOptions } from './credits/index.ts'
import { createKernel, createLedger, type Ledger, type LedgerOptions } from './ledger/index.ts'
import { createLocks, type LockOptions, type Locks } from './locks/index.ts'
import { createQuota, type Quota, type QuotaOptions } from './quota/index.ts'
import type { AmountKind, AmountOf } from './ledger/book.ts'
import { createRows, type Rows, type RowsOptions } from './rows/index.ts'
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
}

/** All rooms over one client. */
export interface Holdfast<Tx> {
  readonly tx: Transactions<Tx>
  readonly locks: Locks<Tx>
  readonly rows: Rows<Tx>
  /** What spans several books of the ledger. */
  readonly ledger: Ledger<Tx>
  /** Declares a quota: `used + cost <= limit`. */
  quota<K extends AmountKind = 'number'>(options: QuotaOptions<K>): Quota<Tx, AmountOf<K>>
  /** Declares a book of credits: grants with priority and expiry, spent in order. */
  credits<K extends AmountKind = 'number'>(options: CreditsOptions<K>): Credits<Tx, AmountOf<K>>
  /** Declares a stock: never below zero, only through movements. */
  stock<K extends AmountKind = 'number', L extends string = string>(
    options: StockOptions<K, L>,
  ): Stock<Tx, AmountOf<K>, L>
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
    quota: (quotaOptions) => createQuota(kernel, quotaOptions),
    credits: (creditsOptions) => createCredits(kernel, creditsOptions),
    stock: (stockOptions) => createStock(kernel, stockOptions),
    guard: locks.guard,
    transaction: tx.run,
  }
}
