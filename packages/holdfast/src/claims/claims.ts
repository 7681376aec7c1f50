import { hostname } from 'node:os'
import type { Driver, Row } from '../core/driver.ts'
import { channels, publish } from '../core/events.ts'
import { isHole, tableUnfit } from '../core/errors/claim-finding.ts'
import { holdfastError } from '../core/errors.ts'
import { checkTables } from './check.ts'
import { type Claim, claimsGiven, type FailOutcome, isClaim, type Outcome } from './claim.ts'
import { createDead, type DeadRows } from './dead.ts'
import type { ClaimsEngine, Recovered } from './engine.ts'
import {
  type ClaimsOptions,
  claimsOptions,
  invalid,
  leaseSettings,
  takeLayout,
  text,
  type TransactionClaimsOptions,
  transactionClaimsOptions,
} from './layout.ts'
import {
  type FailOptions,
  failOptions,
  LeaseClaims,
  type LeaseVerbs,
  recoverOptions,
} from './lease-claims.ts'
import { ShardedClaims } from './sharded-claims.ts'
import type { RunOptions, Worker } from './run-options.ts'
import { runTerms } from './run-terms.ts'
import { createTransactionClaims, type TransactionClaims } from './taking.ts'
import { startWorker } from './worker.ts'
import { assertDriver } from '../core/client-kind.ts'
import { objectGiven } from '../core/options/given.ts'
import { optionsGiven } from '../core/options/known-options.ts'
import type { ClaimFinding } from '../core/errors/error-details.ts'

/** One claim or several. */
type Some<R> = Claim<R> | readonly Claim<R>[]

/** Rows of a table of the caller's, claimed with a lease and fenced by a token. */
export interface Claims<Tx, R> {
  /**
   * Claims up to `limit` rows, oldest first; those that others have locked are left out. Callers that
   * ask at the same moment share a statement.
   *
   * @example const claims = await outbox.claim(100)
   * @throws OPTION_INVALID, CLAIM_TABLE_UNFIT, TX_NESTED, COMMIT_UNKNOWN
   */
  claim(limit?: number): Promise<readonly Claim<R>[]>
  /**
   * The same in a transaction of the caller's: claimed when it commits.
   *
   * @throws CLAIM_OUTSIDE_TRANSACTION, CLAIM_STALE_SNAPSHOT
   */
  claim(tx: Tx, limit?: number): Promise<readonly Claim<R>[]>
  /**
   * Makes the leases last as long again from now. The lost ones are told. A row that is locked right now
   * is not waited for: its claim is not lost, but its `deadline` stays where it was.
   *
   * @throws COMMIT_UNKNOWN
   */
  heartbeat(claims: Some<R>): Promise<Outcome<R>>
  /** Writes that they are done, or deletes them. The lost ones are told. @throws COMMIT_UNKNOWN */
  complete(claims: Some<R>): Promise<Outcome<R>>
  /**
   * The same together with what the transaction wrote: once it commits, both have happened, exactly
   * once. Rejects if one is lost, so that the transaction is rolled back.
   *
   * @example
   * await hf.transaction(async (tx) => {
   *   await tx.query('INSERT INTO sent …')
   *   await outbox.complete(tx, claim)
   * })
   * @throws CLAIM_LOST, CLAIM_OUTSIDE_TRANSACTION
   */
  complete(tx: Tx, claims: Some<R>): Promise<Outcome<R>>
  /**
   * Gives them back, to be tried again later, or for the last time makes them dead.
   *
   * @throws COMMIT_UNKNOWN
   */
  fail(claims: Some<R>, options?: FailOptions): Promise<FailOutcome<R>>
  /** The same in a transaction of the caller's. @throws CLAIM_LOST, CLAIM_OUTSIDE_TRANSACTION */
  fail(tx: Tx, claims: Some<R>, options?: FailOptions): Promise<FailOutcome<R>>
  /** Gives them back as if they had not been claimed. @throws COMMIT_UNKNOWN */
  release(claims: Some<R>): Promise<Outcome<R>>
  /** The same in a transaction of the caller's. @throws CLAIM_LOST, CLAIM_OUTSIDE_TRANSACTION */
  release(tx: Tx, claims: Some<R>): Promise<Outcome<R>>
  /**
   * Gives back rows whose lease is over, in their old place, or makes them dead. Any number of
   * processes may do so at once; a running worker does.
   *
   * @throws OPTION_INVALID, COMMIT_UNKNOWN, SHARD_PRIMARY_FAILED
   */
  recover(options?: { readonly limit?: number }): Promise<Recovered>
  /**
   * Works on rows until it is stopped. Looks at the table first.
   *
   * @example
   * const worker = await outbox.run({
   *   concurrency: 20,
   *   handler: async (row, { signal }) => await publish(row, { signal }),
   * })
   * await worker.stop()
   * @throws CLAIM_TABLE_UNFIT, OPTION_INVALID, ENGINE_NOT_OFFERED
   */
  run(options: RunOptions<Tx, R>): Promise<Worker>
  /**
   * Compares the table with what claims need: columns, and indexes that fit the order and the
   * predicate, as the planner sees them, and what this role may do. An empty list means that all is well. Changes nothing.
   */
  check(): Promise<readonly ClaimFinding[]>
  /** Rows that had their last attempt. Needs `columns.attempts`. */
  readonly dead: DeadRows<R>
}

/** How rows are read where not all of the table comes back as it is. */
export interface Reading<R> {
  readonly texts?: readonly string[]
  readonly isOurs?: boolean
  readonly read: (row: Row) => R
}

/** Claims over a table, in either mode, as an engine has them. */
export function claimsOver<Tx, R>(
  engine: ClaimsEngine,
  driver: Driver<Tx>,
  given: ClaimsOptions | TransactionClaimsOptions,
): Claims<Tx, R> | TransactionClaims<Tx, R> {
  assertDriver(driver, 'createClaims', engine.of)
  if (objectGiven(given, 'options').mode === 'transaction') {
    const options = optionsGiven(given as TransactionClaimsOptions, transactionClaimsOptions)
    const turnColumn = options.perKey?.column
    return createTransactionClaims<Tx, R>(engine, driver, takeLayout(options), turnColumn)
  }
  const options = optionsGiven(given as ClaimsOptions, claimsOptions)
  return createLeaseClaims<Tx, R>(engine, driver, options)
}

/** The face of `LeaseClaims`: with or without the caller's transaction, one claim or several. */
export function createLeaseClaims<Tx, R>(
  engine: ClaimsEngine,
  driver: Driver<Tx>,
  options: ClaimsOptions,
  { texts, isOurs = false, read }: Reading<R> = { read: (row) => row as R },
): Claims<Tx, R> {
  const settings = { ...leaseSettings(options, texts), isOurs }
  const holder = options.holder ?? `${hostname()}:${process.pid}`
  text(holder, 'holder')
  const lease: LeaseVerbs<Tx, R> =
    driver.shards === undefined
      ? new LeaseClaims<Tx, R>(engine, driver, settings, holder, read)
      : new ShardedClaims<Tx, R>(engine, driver, driver.shards, settings, holder, read)
  const check = (): ReturnType<typeof checkTables> =>
    checkTables(driver, (primary) => engine.check(primary, settings))
  const finisher =
    (verb: 'heartbeat' | 'complete' | 'fail' | 'release') =>
    async (...args: readonly unknown[]): Promise<FailOutcome<R>> => {
      const alone = isSome(args[0]) || args.length < 2
      const [tx, claims, given] = alone ? [undefined, ...args] : args
      const all = claimsGiven<R>(claims, settings.layout.key.length)
      const failing = failingOf(given)
      if (!alone) return await lease.finishIn(tx as Tx, verb, all, failing)
      const outcome = await lease.finish(verb, all, failing)
      lease.tellLost(outcome.lost, verb)
      return outcome
    }
  return {
    async claim(...args: readonly unknown[]) {
      const alone = typeof args[0] === 'number' || args.length === 0 || isNothing(args)
      const [tx, limit = 1] = alone ? [undefined, ...args] : args
      // A handle that is missing is no wish to do without a transaction.
      if (!alone && tx === undefined) driver.join(tx as Tx)
      return await lease.claim(tx as Tx | undefined, limit as number)
    },
    heartbeat: finisher('heartbeat'),
    complete: finisher('complete'),
    fail: finisher('fail'),
    release: finisher('release'),
    async recover(given) {
      const { failure, ...recovered } = await lease.recover(
        optionsGiven(given, recoverOptions).limit ?? 500,
      )
      if (failure !== undefined) throw failure
      return recovered
    },
    async run(runOptions) {
      const terms = runTerms(runOptions, settings.leaseMs)
      if (terms.listen !== undefined && !engine.hears)
        throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'listen' } })
      const { table } = settings.layout.table
      const { findings, asked, failure } = await check()
      // One of several primaries that cannot be asked is no reason to leave alone what the others have.
      if (failure !== undefined && asked === 0) throw failure
      const holes = findings.filter(isHole)
      if (holes.length > 0) throw tableUnfit(table, holes)
      if (failure !== undefined)
        publish(channels.claimsTrouble, { table, during: 'claim', error: failure })
      return startWorker(driver, lease, terms)
    },
    async check() {
      const { findings, failure } = await check()
      if (failure !== undefined) throw failure
      return findings
    },
    dead: createDead(engine, driver, settings, {
      key: settings.layout.key,
      listedBy: settings.layout.key,
      asJson: false,
      read,
    }),
  }
}

/** A claim, and no handle of a client: one of Prisma has whatever the models are called. */
function isSome(value: unknown): boolean {
  return Array.isArray(value) || isClaim(value)
}

const mostRetryMs = 100 * 365 * 86_400_000

function failingOf(given: unknown): FailOptions {
  const failing = optionsGiven(given as FailOptions | undefined, failOptions)
  const { retryInMs = 0 } = failing
  if (Number.isFinite(retryInMs) && retryInMs >= 0 && retryInMs <= mostRetryMs) return failing
  throw invalid('retryInMs', 'must be a number of milliseconds, 0 or more, and at most 100 years')
}

function isNothing(args: readonly unknown[]): boolean {
  return args.length === 1 && args[0] === undefined
}
