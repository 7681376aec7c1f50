/** `holdfast/claims`: workers on rows of one's own table, and a ready-made queue, on PostgreSQL. */
import { type Claims, claimsOver } from '../claims/claims.ts'
import type { DeadRows } from '../claims/dead.ts'
import { type DeadJob, type DeadJobsOptions, deadJobsOver } from '../claims/dead-jobs.ts'
import type { ClaimsOptions, TransactionClaimsOptions } from '../claims/layout.ts'
import type { TransactionClaims } from '../claims/taking.ts'
import { type Work, type WorkOptions, workOver } from '../claims/work.ts'
import type { Driver, Row } from '../core/driver.ts'
import { postgresClaims } from '../engines/postgres/claims/claims-engine.ts'

export type { Claim, FailOutcome, Outcome } from '../claims/claim.ts'
export type { Claims } from '../claims/claims.ts'
export type {
  DeadKeys,
  DeadOptions,
  DeadOutcome,
  DeadPage,
  DeadRow,
  DeadRows,
} from '../claims/dead.ts'
export type { DeadJob, DeadJobsOptions } from '../claims/dead-jobs.ts'
export type { ColumnValue, PriorityColumn } from '../claims/engine.ts'
export type {
  BackoffOptions,
  ClaimColumns,
  ClaimsOptions,
  ClaimValues,
  PerKeyOptions,
  RateOptions,
  TransactionClaimsOptions,
} from '../claims/layout.ts'
export type { FailOptions } from '../claims/lease-claims.ts'
export type { Recovered } from '../claims/engine.ts'
export type {
  HandlerContext,
  PaceOptions,
  RowHandler,
  RunOptions,
  TransactionHandler,
  Worker,
} from '../claims/run-options.ts'
export type { Taken, TransactionClaims } from '../claims/taking.ts'
export type { NewWork, Work, WorkItem, WorkOptions } from '../claims/work.ts'
export type { Enqueued } from '../claims/engine.ts'
export type { ClaimFinding } from '../core/errors/error-details.ts'
export type { ClaimsLostEvent, ClaimsTroubleEvent } from '../core/events/event-map.ts'
export type { Stopped, StopOptions } from '../core/options/stopping.ts'

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
  return claimsOver(postgresClaims, driver, given)
}

/** Declares a queue in the table `work`, which `holdfast migrate` makes. */
export function createWork<Tx, P = unknown>(driver: Driver<Tx>, given: WorkOptions): Work<Tx, P> {
  return workOver(postgresClaims, driver, given)
}

/**
 * The dead jobs of the table `work`, of one queue or of all: for whoever looks after a database without
 * declaring its queues. `hf.work(…).dead` is the same for one queue.
 *
 * @example
 * const dead = createDeadJobs(fromPg(pool))
 * const { rows } = await dead.list()
 * await dead.retry(rows.map(({ key }) => key), { by: 'ops' })
 */
export function createDeadJobs<Tx, P = unknown>(
  driver: Driver<Tx>,
  given: DeadJobsOptions = {},
): DeadRows<DeadJob<P>> {
  return deadJobsOver(postgresClaims, driver, given)
}
