import type { ClaimsOptions } from '../claims/layout.ts'
import type { Driver } from '../core/driver.ts'
import { optionsGiven } from '../core/given.ts'
import type { Looking } from './answer.ts'
import { observeFollowers, observeKeys, observeUsage } from './book-reports.ts'
import { observeClaims } from './claims.ts'
import { observeLeases, observeSchedules } from './coordination.ts'
import { observeAccount, observeBooks, observeHolds } from './ledger.ts'
import type { Observer } from './observer.ts'
import { observeTransactions } from './transactions.ts'

/** What an observer reads besides locks. */
export type Reports = Pick<
  Observer,
  | 'transactions'
  | 'books'
  | 'account'
  | 'keys'
  | 'usage'
  | 'followers'
  | 'holds'
  | 'leases'
  | 'schedules'
  | 'claims'
>

/** Where, and how patiently, it is read. */
export interface ReportsOptions {
  readonly schema: string
  readonly claims: readonly ClaimsOptions[]
  readonly statementTimeoutMs: number
}

/** Reports over a driver; each call is a look of its own. */
export function createReports<Tx>(
  driver: Driver<Tx>,
  { schema, claims, statementTimeoutMs }: ReportsOptions,
): Reports {
  const looking: Looking<Tx> = { driver, schema, statementTimeoutMs }
  return {
    transactions: async (options) => await observeTransactions(looking, optionsGiven(options)),
    books: () => observeBooks(looking),
    account: async (address, options) =>
      await observeAccount(looking, optionsGiven(address, 'address'), optionsGiven(options)),
    keys: async (book, options) => await observeKeys(looking, book, optionsGiven(options)),
    usage: async (address, options) =>
      await observeUsage(looking, optionsGiven(address, 'address'), optionsGiven(options)),
    followers: () => observeFollowers(looking),
    holds: async (options) => await observeHolds(looking, optionsGiven(options)),
    leases: async (options) => await observeLeases(looking, optionsGiven(options)),
    schedules: async (options) => await observeSchedules(looking, optionsGiven(options)),
    claims: () => observeClaims(looking, claims),
  }
}
