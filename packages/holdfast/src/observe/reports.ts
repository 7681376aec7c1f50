import type { ClaimsOptions } from '../claims/layout.ts'
import type { Driver } from '../core/driver.ts'
import type { Looking } from './answer.ts'
import { observeFollowers, observeKeys, observeUsage } from './book-reports.ts'
import { observeClaims } from './claims.ts'
import { observeLeases, observeSchedules } from './coordination.ts'
import { observeAccount, observeBooks, observeHolds } from './ledger.ts'
import {
  accountAddress,
  accountOptions,
  daysOptions,
  keysPage,
  limitOptions,
  type Observer,
  ticksOptions,
} from './observer.ts'
import { observeTransactions } from './transactions.ts'
import { optionsGiven } from '../core/options/known-options.ts'

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
    transactions: async (options) =>
      await observeTransactions(looking, optionsGiven(options, limitOptions)),
    books: () => observeBooks(looking),
    account: async (address, options) =>
      await observeAccount(
        looking,
        optionsGiven(address, accountAddress, 'address'),
        optionsGiven(options, accountOptions),
      ),
    keys: async (book, options) =>
      await observeKeys(looking, book, optionsGiven(options, keysPage)),
    usage: async (address, options) =>
      await observeUsage(
        looking,
        optionsGiven(address, accountAddress, 'address'),
        optionsGiven(options, daysOptions),
      ),
    followers: () => observeFollowers(looking),
    holds: async (options) => await observeHolds(looking, optionsGiven(options, limitOptions)),
    leases: async (options) => await observeLeases(looking, optionsGiven(options, limitOptions)),
    schedules: async (options) =>
      await observeSchedules(looking, optionsGiven(options, ticksOptions)),
    claims: () => observeClaims(looking, claims),
  }
}
