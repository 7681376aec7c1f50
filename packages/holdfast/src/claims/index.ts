import type { Driver, Row } from '../core/driver.ts'
import { type Claims, createLeaseClaims } from './claims.ts'
import { type ClaimsOptions, takeLayout, type TransactionClaimsOptions } from './layout.ts'
import { createTransactionClaims, type TransactionClaims } from './taking.ts'
import { objectGiven } from '../core/given.ts'
import { optionsGiven } from '../core/known-options.ts'
import { claimsOptions, transactionClaimsOptions } from './known-options.ts'
import { assertDriver } from '../core/client-kind.ts'

export type { ClaimsLostEvent, ClaimsTroubleEvent } from '../core/event-map.ts'
export type { PriorityColumn } from '../engines/postgres/claims/claims.ts'
export type { ClaimFinding } from './check.ts'
export type { Claim, FailOutcome, Outcome } from './claim.ts'
export type { Claims } from './claims.ts'
export type {
  DeadKeys,
  DeadOptions,
  DeadOutcome,
  DeadPage,
  DeadRow,
  DeadRows,
} from './dead.ts'
export { createDeadJobs, type DeadJob, type DeadJobsOptions } from './dead-jobs.ts'
export type {
  BackoffOptions,
  ClaimColumns,
  ClaimsOptions,
  ClaimValues,
  ColumnValue,
  PerKeyOptions,
  RateOptions,
  TransactionClaimsOptions,
} from './layout.ts'
export type { FailOptions, Recovered } from './lease-claims.ts'
export type { Taken, TransactionClaims } from './taking.ts'
export type { Enqueued, NewWork, Work, WorkItem, WorkOptions } from './work.ts'
export { createWork } from './work.ts'
export type { Stopped, StopOptions } from '../core/stopping.ts'
export type {
  HandlerContext,
  PaceOptions,
  RowHandler,
  RunOptions,
  TransactionHandler,
  Worker,
} from './run-options.ts'

/** Declares claims over a table. Nothing is installed, and nothing is asked of the database yet. */
export function createClaims<Tx, R = Row>(
  driver: Driver<Tx>,
  options: TransactionClaimsOptions,
): TransactionClaims<Tx, R>
export function createClaims<Tx, R = Row>(driver: Driver<Tx>, options: ClaimsOptions): Claims<Tx, R>
export function createClaims<Tx, R = Row>(
  driver: Driver<Tx>,
  given: ClaimsOptions | TransactionClaimsOptions,
): Claims<Tx, R> | TransactionClaims<Tx, R> {
  assertDriver(driver, 'createClaims')
  if (objectGiven(given, 'options').mode === 'transaction') {
    const options = optionsGiven(given as TransactionClaimsOptions, transactionClaimsOptions)
    return createTransactionClaims<Tx, R>(driver, takeLayout(options), options.perKey?.column)
  }
  return createLeaseClaims<Tx, R>(driver, optionsGiven(given as ClaimsOptions, claimsOptions))
}
