import type { Driver } from './core/driver.ts'
import { createLocks, type LockOptions, type Locks } from './locks/index.ts'
import { createRows, type Rows, type RowsOptions } from './rows/index.ts'
import { createTransactions, type Transactions } from './tx/index.ts'

export type { Driver, Isolation } from './core/driver.ts'
export * from './errors.ts'
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
}

/** All rooms over one client. */
export interface Holdfast<Tx> {
  readonly tx: Transactions<Tx>
  readonly locks: Locks<Tx>
  readonly rows: Rows<Tx>
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
  return { tx, locks, rows, guard: locks.guard, transaction: tx.run }
}
