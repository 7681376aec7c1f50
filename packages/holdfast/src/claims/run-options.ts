import type { Duration } from '../core/options/duration.ts'
import type { StopOptions, Stopped } from '../core/options/stopping.ts'
import type { Claim } from './claim.ts'
import type { KnownOptions } from '../core/options/known-options.ts'

/** What a handler is told besides the row. */
export interface HandlerContext<R> {
  readonly claim: Claim<R>
  readonly attempt: number | undefined
  /**
   * Aborted with `CLAIM_LOST` as soon as the row is not ours any more, and with `CLAIM_STOPPED` if the
   * worker does not wait any longer. Pass it to whatever the handler waits for.
   */
  readonly signal: AbortSignal
}

/** What a worker does with a row, by itself or in a transaction: one of both. */
export type RunOptions<Tx, R> = PaceOptions & (RowHandler<R> | TransactionHandler<Tx, R>)

const poll: KnownOptions<NonNullable<RunOptions<never, never>['poll']>> = {
  min: 'checked',
  max: 'checked',
}

export const runOptions: KnownOptions<RunOptions<never, never>> = {
  concurrency: 'checked',
  poll: poll,
  recoverEvery: 'checked',
  listen: 'checked',
  handler: 'function',
  transactionHandler: 'function',
}

/** How a worker works. */
export interface PaceOptions {
  /**
   * How many handlers run at a time in this process. With `transactionHandler` it is at most one less than the
   * connections of the pool, where the client shows how many these are (pg, postgres.js, Drizzle and TypeORM
   * over `pg`): one is left to heartbeats. @defaultValue 10, or that
   */
  readonly concurrency?: number
  /**
   * How long to wait before looking again when there was nothing to do: from `min`, doubling, to
   * `max`. @defaultValue { min: '50 ms', max: '2 s' }
   */
  readonly poll?: { readonly min?: Duration; readonly max?: Duration }
  /** Looks for rows whose lease is over this often; `false` leaves it to others. @defaultValue the lease */
  readonly recoverEvery?: Duration | false
  /**
   * A channel of NOTIFY that says: there may be something. Only a hint, polling goes on; ignored by
   * clients and poolers that cannot listen.
   */
  readonly listen?: string
}

/** A handler that has no transaction. */
export interface RowHandler<R> {
  /** Works on one row. Resolving completes it, rejecting fails it. */
  readonly handler: (row: R, context: HandlerContext<R>) => Promise<unknown>
  readonly transactionHandler?: never
}

/** A handler that has one. */
export interface TransactionHandler<Tx, R> {
  /**
   * Works on one row in a transaction of ours, in which the row is completed too: what the handler writes
   * happens exactly once. The transaction is held open while the handler runs, so keep it short.
   */
  readonly transactionHandler: (tx: Tx, row: R, context: HandlerContext<R>) => Promise<unknown>
  readonly handler?: never
}

/** A worker that is running. */
export interface Worker extends AsyncDisposable {
  /**
   * Claims nothing more, lets handlers end, and resolves when all is written. Handlers that are at work
   * after `within` have their signal aborted with `CLAIM_STOPPED`; if they reject, their rows are given
   * back without counting the attempt. Those that do not heed it are left after `leaveAfter`: their
   * leases are not made longer any more, and their rows come back when these are over.
   *
   * @example
   * const { left } = await worker.stop({ within: '10 s' })
   * if (left > 0) process.exit(1)
   */
  stop(options?: StopOptions): Promise<Stopped>
  /** Works until nothing is left that could be claimed now, then stops. */
  drain(): Promise<void>
  /** Look now: rows were added. */
  wake(): void
  /** Handlers that are running. */
  readonly active: number
}
