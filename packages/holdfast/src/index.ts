import {
  type Claims,
  type ClaimsOptions,
  createClaims,
  createWork,
  type TransactionClaims,
  type TransactionClaimsOptions,
  type Work,
  type WorkOptions,
} from './entries/claims.ts'
import { Closing, type Closed, type Marks } from './closing.ts'
import type { Subject } from './core/activity.ts'
import type { Driver, Row } from './core/driver.ts'
import { chooseRootClient, type RootClient } from './core/open-transactions.ts'
import type { StopOptions } from './core/options/stopping.ts'
import { defaultWait, type Wait } from './core/options/wait.ts'
import { withShared } from './core/options/with-shared.ts'
import { createCredits, type Credits } from './credits/index.ts'
import { createLedger, type Ledger } from './ledger/index.ts'
import { createKernel, type LedgerOptions, ledgerOptions } from './ledger/kernel.ts'
import {
  createLeader,
  createLeases,
  type Leader,
  type LeaderOptions,
  type Leases,
  type LeasesOptions,
} from './entries/leases.ts'
import { createLocks, type LockOptions, type Locks } from './entries/locks.ts'
import {
  createObserver,
  type Observer,
  type Recorder,
  type RecorderOptions,
  startRecorder,
} from './observe/index.ts'
import { createRateLimit, type RateLimit, type RateLimitOptions } from './rate-limit/index.ts'
import { createQuota, type Quota, type QuotaOptions } from './quota/index.ts'
import type { AmountKind, AmountOf } from './ledger/book.ts'
import { createOnce, type Once, type OnceRoomOptions } from './entries/once.ts'
import { createRows, type Rows, type RowsOptions } from './entries/rows.ts'
import {
  createSchedule,
  type Schedule,
  type ScheduleOptions,
  type ScheduleRoomOptions,
} from './entries/schedule.ts'
import { createStock, type Stock, type StockOptions } from './stock/index.ts'
import {
  createTransactions,
  type ResolveOptions,
  type Transactions,
  type TxOptions,
} from './tx/index.ts'
import { assertOneOf, type KnownOptions, optionsGiven } from './core/options/known-options.ts'
import { assertDriver } from './core/client-kind.ts'
import type { CreditsOptions } from './credits/options.ts'
import { resolveOptions } from './tx/ask-again.ts'
import { txOptions } from './tx/run-options.ts'
import { lockOptions } from './locks/locks.ts'
import { rowsOptions } from './rows/rows.ts'
import { onceRoomOptions } from './once/once.ts'
import { leasesOptions } from './leases/leases.ts'
import { scheduleRoomOptions } from './schedule/schedule.ts'
import { type ObserverOptions, observerOptions } from './observe/observer.ts'

export type { Closed, LeftBehind } from './closing.ts'
export type { Driver, Isolation } from './core/driver.ts'
export type { Duration } from './core/options/duration.ts'
export type { RootClient } from './core/open-transactions.ts'
export type { Wait } from './core/options/wait.ts'
export { assertStopOptions, type Stopped, type StopOptions } from './core/options/stopping.ts'
export { type CircuitOptions, withCircuit } from './drivers/circuit.ts'
export { hearNotice } from './drivers/parts/sync-wait.ts'
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
  inScope,
  type KeyPart,
  type LockKey,
  type LockNamespace,
  legacyKey,
  lockKey,
  lockNamespace,
  lockNamespaces,
  shared,
  type TryGuarded,
} from './entries/locks.ts'

/** Settings of a Holdfast. Those of a part win over `schema`, `resolveFor` and `wait`, which hold for all. */
export interface HoldfastOptions extends ResolveOptions {
  /**
   * The schema that Holdfast was installed in: `holdfast migrate --schema`, `migrate(driver, { schema })`.
   * @defaultValue 'holdfast'
   */
  readonly schema?: string
  /**
   * How long calls wait for somebody else's lock that do not say so themselves: names, rows, tables, `once`.
   * @defaultValue '2 s'
   */
  readonly wait?: Wait
  readonly tx?: TransactionOptions
  readonly locks?: LockOptions
  readonly observe?: ObserverOptions
  readonly rows?: RowsOptions
  readonly ledger?: LedgerOptions
  readonly leases?: LeasesOptions
  readonly once?: OnceRoomOptions
  readonly schedule?: ScheduleRoomOptions
}

/** Settings of transactions that Holdfast opens: `transaction`, `guard`, `rows.optimistic`, `once`. */
export interface TransactionOptions extends TxOptions {
  /**
   * What is done about a body that uses the pool beneath the client instead of its handle: TX_ROOT_CLIENT is
   * thrown, published as the event `tx.root-client`, or nothing. Known for pg, and for Drizzle, Kysely, Prisma
   * and TypeORM on a pool of pg that Holdfast can reach.
   * @defaultValue 'throw' when NODE_ENV is `development`, else 'report'
   */
  readonly rootClient?: RootClient
}

/** All rooms over one client. */
export interface Holdfast<Tx> {
  readonly tx: Transactions<Tx>
  readonly locks: Locks<Tx>
  /** Looks at the database: who blocks whom, by name, and how everything else stands. */
  readonly observe: Observer & {
    /**
     * Begins to write down, behind the work of this process, what its locks are called and how they are
     * used, so that others see it: the console, the command line, another process.
     *
     * @example await using recorder = await hf.observe.record()
     * @throws SCHEMA_MISSING, OBSERVE_RECORDING, OPTION_INVALID, TX_NESTED
     */
    record(options?: RecorderOptions): Promise<Recorder>
  }
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
  /** Declares a rate limit: a number for each key, to slow a client down. No history, no operation ids. */
  rateLimit(options: RateLimitOptions): RateLimit<Tx>
  /** Declares a book of credits: grants with priority and expiry, spent in order. */
  credits<K extends AmountKind = 'number', F extends string = never>(
    options: CreditsOptions<K, F>,
  ): Credits<Tx, AmountOf<K>, F>
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
  /** Same as `locks.tryGuard`: the same if the locks are free, and no waiting. */
  readonly tryGuard: Locks<Tx>['tryGuard']
  /** Same as `tx.run`: open a transaction, run the body, commit, retry what may be retried. */
  readonly transaction: Transactions<Tx>['run']
  /**
   * Ends what runs in this process: workers, schedules, leaders, sweepers and recorders stop; every call that
   * is under way may end, with all its own steps; leases are released. What does not end in time is reported,
   * and what it holds in the database ends by itself. New calls are refused with HOLDFAST_CLOSED. A second
   * `close` resolves with the result of the first. End your pool yourself afterwards.
   *
   * @example
   * process.once('SIGTERM', async () => {
   *   const { left } = await hf.close({ within: '20 s' })
   *   await pool.end()
   *   process.exit(left.length === 0 ? 0 : 1)
   * })
   * @throws OPTION_INVALID
   */
  close(options?: StopOptions): Promise<Closed>
}

/**
 * Everything Holdfast does, over the client a project already has. Opens no connection and changes
 * nothing until a method is called.
 *
 * @example
 * const hf = createHoldfast(fromPrisma(prisma))
 * await hf.guard(lockKey('image-upload', userId), async (tx) => { …check, then write… })
 */
export function createHoldfast<Tx>(driver: Driver<Tx>, given: HoldfastOptions = {}): Holdfast<Tx> {
  assertDriver(driver, 'createHoldfast')
  const options = optionsGiven(given, holdfastOptions)
  const {
    schema = 'holdfast',
    resolveFor = '10 s',
    wait = defaultWait,
    tx: txOptions = {},
  } = options
  const { rootClient, ...txDefaults } = txOptions
  const closing = new Closing()
  if (rootClient !== undefined) chooseRootClient(driver, rootClient)
  const tx = closing.face(createTransactions(driver, txDefaults), transaction)
  const { waitMs: lockWait = wait, ...ofLocks } = options.locks ?? {}
  assertOneOf(options.locks ?? {}, 'wait', 'waitMs')
  const locking = withShared({ tx: txDefaults, wait: lockWait }, ofLocks)
  const locks = closing.face(createLocks(driver, locking), calls('locks'), {
    guard: transaction,
    tryGuard: transaction,
  })
  const observing = withShared({ schema }, options.observe)
  const observer = createObserver(driver, observing)
  const record = (recorderOptions?: RecorderOptions): Promise<Recorder> =>
    startRecorder(driver, { schema: observing.schema ?? schema, ...recorderOptions })
  const kernel = createKernel(driver, withShared({ schema, resolveFor }, options.ledger))
  return {
    tx,
    locks,
    observe: closing.face({ ...observer, record }, calls('observe'), {
      queues: 'plain',
      record: { what: 'recorder', name: '', mark: 'runner' },
    }),
    rows: closing.face(
      createRows(driver, withShared({ wait, tx: txDefaults }, options.rows)),
      calls('rows'),
      {
        optimistic: transaction,
        withVersionCheck: transaction,
      },
    ),
    ledger: closing.face(createLedger(kernel), calls('ledger'), {
      apply: operation,
      adjust: operation,
      open: operation,
      follow: transaction,
      startFollower: { what: 'follower', name: '', mark: 'runner-now' },
      startSweeper: { what: 'sweeper', name: '', mark: 'runner-now' },
    }),
    leases: closing.face(
      createLeases(driver, withShared({ schema, resolveFor }, options.leases)),
      calls('leases'),
      {
        acquire: 'lease',
        tryAcquire: 'lease',
      },
    ),
    leader: (wanted) =>
      closing.face(createLeader(driver, wanted, withShared({ schema }, options.leases)), {
        what: 'leader',
        name: wanted.name,
      }),
    schedule: (wanted) =>
      closing.face(
        createSchedule(driver, wanted, withShared({ schema, resolveFor }, options.schedule)),
        { what: 'schedule', name: wanted.name },
        { start: 'runner-now' },
      ),
    once: closing.face(
      createOnce(driver, withShared({ schema, resolveFor, wait, tx: txDefaults }, options.once)),
      transaction,
      {
        forget: { what: 'call', name: 'once.forget' },
      },
    ),
    quota: (wanted) =>
      closing.face(createQuota(kernel, wanted), operation, {
        ...ofHolds,
        withHold: { what: 'hold', name: wanted.name },
      }),
    rateLimit: (wanted) =>
      closing.face(createRateLimit(driver, wanted, { schema, resolveFor }), {
        what: 'call',
        name: 'rateLimit',
      }),
    credits: (wanted) =>
      closing.face(createCredits(kernel, wanted), operation, {
        ...ofHolds,
        withHold: { what: 'hold', name: wanted.name },
      }),
    stock: (wanted) => closing.face(createStock(kernel, wanted), operation, ofHolds),
    claims: ((wanted: ClaimsOptions) => {
      // One that is claimed in the caller's transaction has no answers to ask for again.
      const ours =
        (wanted as { mode?: unknown } | undefined)?.mode === 'transaction' ? {} : { resolveFor }
      const claims = createClaims(driver, withShared<ClaimsOptions>(ours, inSchema(wanted)))
      return claimsFace(tableNameOf(wanted), claims)
    }) as Holdfast<Tx>['claims'],
    work: (wanted) => {
      const work = createWork(driver, withShared({ schema, resolveFor }, wanted))
      return claimsFace(wanted.queue, work as Work<Tx, unknown>) as never
    },
    guard: locks.guard,
    tryGuard: locks.tryGuard,
    transaction: tx.run,
    close: (stopping) => closing.close(stopping),
  }

  /** Where it counts how often rows of a key are claimed. */
  function inSchema(wanted: ClaimsOptions): ClaimsOptions {
    const { perKey } = (wanted ?? {}) as Partial<ClaimsOptions>
    if (perKey?.rate === undefined) return wanted
    return { ...wanted, perKey: { ...perKey, rate: withShared({ schema }, perKey.rate) } }
  }

  function claimsFace<C extends object>(name: string, claims: C): C {
    const marks: Marks<Claims<Tx, unknown>> & Marks<TransactionClaims<Tx, unknown>> = {
      run: { what: 'worker', name, mark: 'runner' },
      heartbeat: 'finish',
      complete: 'finish',
      fail: 'finish',
      release: 'finish',
      finish: 'finish',
    }
    return closing.face(claims, calls(name), marks as Marks<C>)
  }
}

const holdfastOptions: KnownOptions<HoldfastOptions> = {
  ...resolveOptions,
  schema: 'text',
  wait: 'checked',
  tx: { ...txOptions, rootClient: 'checked' },
  locks: lockOptions,
  observe: observerOptions,
  rows: rowsOptions,
  ledger: ledgerOptions,
  leases: leasesOptions,
  once: onceRoomOptions,
  schedule: scheduleRoomOptions,
}

const transaction: Subject = { what: 'transaction', name: '' }
const operation: Subject = { what: 'operation', name: '' }
/** Ends of holds are waited for by whoever took them; a line is only put together. */
const ofHolds = { settle: 'finish', release: 'finish', extend: 'finish', line: 'plain' } as const

/** Methods that are called by the name of their room and their own. */
function calls(room: string): Subject {
  return { what: 'call', name: room }
}

function tableNameOf({ table }: ClaimsOptions): string {
  return typeof table === 'string' ? table : table.table
}
