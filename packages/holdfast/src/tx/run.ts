import type { Scope } from '../core/bucket.ts'
import type { Driver, Isolation, Row, Statement, Transaction } from '../core/driver.ts'
import type { Engine } from '../core/engine.ts'
import type { Duration } from '../core/duration.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import {
  assertNotNested,
  type OpenTransaction,
  openTransactions,
} from '../core/open-transactions.ts'
import { isTraced, traced } from '../core/tracing.ts'
import { cancellable, serverLimit } from './cancel.ts'
import { ConnectionQueue } from './connection-queue.ts'
import { Limits } from './limits.ts'
import { type RetryInfo, type RetryPolicy, retrying, retryTerms } from './retry.ts'
import { type StartLimits, startedWithin } from './started-within.ts'
import { TxEvents } from './tx-events.ts'
import { assertFunction, assertSignal, assertTexts, objectGiven } from '../core/given.ts'

export { assertNotNested } from '../core/open-transactions.ts'

/** How a transaction that Holdfast opens is run. */
export interface RunOptions {
  /** The server's default level unless named. */
  readonly isolation?: Isolation
  /** Limit for all attempts together, from the call. */
  readonly deadline?: Duration
  /** @deprecated Say `deadline`. */
  readonly deadlineMs?: number
  /** Cancels the running statement on the server and rolls back. */
  readonly signal?: AbortSignal
  /** `false` runs once. @defaultValue five attempts, within 10 s, after a conflict or a lost connection */
  readonly retry?: RetryPolicy | false
  /**
   * What the body has read survives a failover once this resolves, also if it wrote nothing: COMMIT waits
   * for the synchronous standby. For looking whether something that ended as COMMIT_UNKNOWN is there.
   * @defaultValue false
   */
  readonly durable?: boolean
  /** Called before each pause; throwing from it ends the retries. */
  readonly onRetry?: (info: RetryInfo) => void
  /** Routing keys for a sharded driver; guard() fills them in from its lock keys. */
  readonly scopes?: readonly string[]
}

/** The same from inside, where a scope may be known by its bucket. */
export interface RoutedOptions extends Omit<RunOptions, 'scopes'> {
  readonly scopes?: readonly Scope[]
}

/** What a body is told about its run. */
export interface Attempt {
  /** From 1. A body may run more than once: keep side effects outside the database out of it. */
  readonly attempt: number
  /** Aborted by the caller's signal or the deadline; pass it to whatever the body waits for. */
  readonly signal: AbortSignal | undefined
  /** Milliseconds left before the deadline, if there is one. */
  remainingMs(): number | undefined
}

/** Defaults of `RunOptions`, for every transaction that Holdfast opens for a caller's body. */
export type TxOptions = Pick<RunOptions, 'deadline' | 'retry' | 'onRetry'>

/** What a call says, and the defaults where it says nothing; `undefined` says nothing. */
export function withTxDefaults<O extends RunOptions>(
  defaults: TxOptions | undefined,
  given: O | undefined,
): O {
  const options = objectGiven(given, 'options')
  assertSignal(options.signal)
  assertTexts(options.scopes, 'scopes')
  if (options.onRetry !== undefined) assertFunction(options.onRetry, 'onRetry')
  if (defaults === undefined) return options
  const { deadline, deadlineMs, retry, onRetry } = options
  return {
    ...options,
    deadline: deadline ?? (deadlineMs === undefined ? defaults.deadline : undefined),
    retry: retry ?? defaults.retry,
    onRetry: onRetry ?? defaults.onRetry,
  }
}

/** How a transaction starts. */
export interface Start {
  /** Its first statement, made when there is a connection to send it on. `startedMs`: since when it is waited for. */
  readonly opening?: ((startedMs: number) => Statement | undefined) | undefined
  /** Whether that statement sets the lock's marker. */
  readonly marked?: boolean | undefined
  /** Longest wait for a connection while all are in use. */
  readonly withinMs?: number | undefined
}

/** The work of one attempt, which was begun at `startedMs`, before it had a connection. `opened` is the answer to `opening`, if the driver could send it. */
export type TransactionBody<Tx, T> = (
  transaction: Transaction<Tx>,
  attempt: Attempt,
  startedMs: number,
  opened?: Promise<readonly Row[]>,
) => Promise<T>

/**
 * What stands before an attempt's connection. It runs the attempt, and says how it starts, when its time
 * has come; `signal` has the caller's abort and the deadline.
 */
export type Admission = <T>(
  attempt: (start: Start) => Promise<T>,
  signal: AbortSignal | undefined,
) => Promise<T>

const atOnce: Admission = (attempt) => attempt({})

/**
 * Opens a transaction, runs the body, commits; runs the *whole* of it again when PostgreSQL says
 * it conflicted. Rooms use this; callers use it through `tx.run` and `guard`. `room` is who asks.
 */
export async function runTransaction<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  options: RoutedOptions = {},
  admission: Admission = atOnce,
  room = 'tx',
): Promise<T> {
  assertNotNested(driver)
  // The span of a guard is that of its transaction.
  if (!isTraced() || room === 'guard')
    return await runAttempts(driver, body, options, admission, room)
  return await traced(
    'transaction',
    () => ({ target: room, attributes: { 'holdfast.room': room } }),
    () => runAttempts(driver, body, options, admission, room),
  )
}

async function runAttempts<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  options: RoutedOptions,
  admission: Admission,
  room: string,
): Promise<T> {
  const limits = Limits.of(driver, options)
  assertIsolation(driver.engine, options.isolation)
  const here: OpenTransaction = { driver, outer: openTransactions.getStore(), open: true }
  const events = TxEvents.start(room)
  let connected = false
  const inside: TransactionBody<Tx, T> = (transaction, attempt, startedMs, opened) => {
    connected = true
    events?.opened()
    const running = openTransactions.run(here, body, transaction, attempt, startedMs, opened)
    return options.durable === true ? followed(driver.engine, running, transaction) : running
  }
  const once = (number: number, leftMs: number): Promise<T> =>
    admission((start) => {
      events?.begins(number)
      connected = false
      const how: Starting = {
        opening: start.opening,
        marked: start.marked,
        withinMs: start.withinMs,
        patienceMs: options.retry === false ? patienceWithoutRetryMs : leftMs,
        startedMs: performance.now(),
      }
      return limits === undefined
        ? attemptPlain(driver, inside, options, number, how)
        : attemptCancellable(driver, inside, options, number, how, limits)
    }, limits?.signal)
  try {
    const policy = retryTerms(options.retry)
    const forMs = options.retry === false ? 0 : policy.budgetMs
    const result = await retrying(once, {
      policy,
      patient: {
        codes: ['CONNECTION_UNAVAILABLE'],
        forMs,
        // Then it is an error of the body.
        unless: () => connected,
      },
      signal: limits?.signal,
      onRetry: options.onRetry,
    })
    events?.committed()
    return result
  } catch (error) {
    events?.failed(error)
    throw error
  } finally {
    here.open = false
    limits?.end()
  }
}

/** Makes COMMIT wait for the standby also if the body has written nothing. */
async function followed<Tx, T>(
  { waitForStandby }: Engine,
  running: Promise<T>,
  transaction: Transaction<Tx>,
): Promise<T> {
  const result = await running
  await transaction.query(waitForStandby)
  return result
}

/** How long a connection is waited for where nothing else says so. */
const patienceWithoutRetryMs = 30_000

/** `Start` of one attempt. */
interface Starting extends Start, StartLimits {
  readonly withinMs: number | undefined
  readonly startedMs: number
}

const noScopes: readonly Scope[] = []

/** Nothing can end it early, so it may wait in the very statement it begins with. */
function attemptPlain<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  { scopes = noScopes, isolation }: RoutedOptions,
  number: number,
  start: Starting,
): Promise<T> {
  const attempt: Attempt = { attempt: number, signal: undefined, remainingMs: () => undefined }
  const { opening, startedMs } = start
  return startedWithin(driver, start, (starts) =>
    driver.transaction(
      (transaction, opened) => {
        starts()
        return body(transaction, attempt, startedMs, opened)
      },
      {
        scopes,
        isolation,
        connectWithinMs: connectMs(start),
        marked: start.marked,
        opening: opening && (() => opening(startedMs)),
      },
    ),
  )
}

/** For a driver that tells a used-up pool from a server that does not answer: both limits are one to it. */
function connectMs({ withinMs = Infinity, patienceMs }: StartLimits): number {
  return Math.min(withinMs, patienceMs)
}

/** It may be ended early, so the server has to know until when before it may wait. */
async function attemptCancellable<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  { scopes = noScopes, isolation }: RoutedOptions,
  number: number,
  start: Starting,
  limits: Limits,
): Promise<T> {
  const { signal } = limits
  signal.throwIfAborted()
  const attempt: Attempt = { attempt: number, signal, remainingMs: () => limits.remainingMs() }
  const queue = new ConnectionQueue(limits, start.startedMs)
  let finished = false
  const transacting = startedWithin(driver, start, (starts) =>
    driver.transaction(
      async (transaction, opened) => {
        queue.assertIn()
        starts()
        const since = performance.now()
        // It may still give up while BEGIN is under way.
        const first = await opened
        queue.assertIn()
        queue.leave()
        try {
          return await cancellable(driver, transaction, limits, first, () =>
            body(transaction, attempt, start.startedMs),
          )
        } catch (error) {
          limits.look()
          throw error
        } finally {
          finished = !signal.aborted
          limits.took(since)
        }
      },
      {
        scopes,
        isolation,
        timeoutMs: limits.remainingMs(),
        connectWithinMs: connectMs(start),
        connected: () => queue.assertIn(),
        opening: () => serverLimit(driver.engine, limits),
        marked: start.marked,
      },
    ),
  )
  try {
    return await Promise.race([transacting, queue.given])
  } catch (error) {
    // While the body runs an abort is the reason, whatever the cancelled statement said.
    if (!finished && signal.aborted && !mayBeSaved(error)) throw signal.reason
    throw error
  } finally {
    queue.leave()
  }
}

/** Part of it may be there in spite of the abort: then that is what has to be told. */
function mayBeSaved(error: unknown): boolean {
  if (!isHoldfastError(error)) return false
  return error.code === 'TX_ENDED_INSIDE'
    ? error.details['ended'] !== 'refused'
    : error.name === 'UnknownOutcomeError'
}

/** @throws OPTION_INVALID */
function assertIsolation({ isolations }: Engine, isolation: Isolation | undefined): void {
  if (isolation === undefined || isolations.includes(isolation)) return
  const subject = `isolation must be ${isolations.map((each) => `'${each}'`).join(', ')}`
  throw holdfastError('OPTION_INVALID', { details: { option: 'isolation', subject } })
}
