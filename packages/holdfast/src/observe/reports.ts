import type { ClaimsOptions } from '../claims/layout.ts'
import type { Driver } from '../core/driver.ts'
import type { Looking } from './answer.ts'
import { observeClaims } from './claims.ts'
import { observeLeases, observeSchedules } from './coordination.ts'
import { observeAccount, observeBooks, observeHolds } from './ledger.ts'
import type { Observer } from './observer.ts'
import { observeTransactions } from './transactions.ts'

/** What an observer reads besides locks. */
export type Reports = Pick<
  Observer,
  'transactions' | 'books' | 'account' | 'holds' | 'leases' | 'schedules' | 'claims'
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
    transactions: (options) => observeTransactions(looking, options),
    books: () => observeBooks(looking),
    account: (address, options) => observeAccount(looking, address, options),
    holds: (options) => observeHolds(looking, options),
    leases: (options) => observeLeases(looking, options),
    schedules: (options) => observeSchedules(looking, options),
    claims: () => observeClaims(looking, claims),
  }
}
