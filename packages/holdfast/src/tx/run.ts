import type { Scope } from '../core/bucket.ts'
import { rolledBack } from '../core/errors/commit-failure.ts'
import type { Driver, Row, Statement, Transaction } from '../core/driver.ts'
import type { Engine } from '../core/engine.ts'
import { holdfastError, isHoldfastError } from '../core/errors.ts'
import {
  assertNotNested,
  type OpenTransaction,
  openTransactions,
} from '../core/open-transactions.ts'
import { isTraced, traced } from '../core/events/tracing.ts'
import { cancellable, serverLimit } from './cancel.ts'
import { awaited } from './awaited.ts'
import { ConnectionQueue } from './connection-queue.ts'
import { Limits } from './limits.ts'
import { retrying, retryTerms } from './retry.ts'
import { type StartLimits, startedWithin } from './started-within.ts'
import { TxEvents } from './tx-events.ts'
import { assertIsolation, type RoutedOptions } from './run-options.ts'

export { assertNotNested } from '../core/open-transactions.ts'

/** What a body is told about its run. */
export interface Attempt {
  /** From 1. A body may run more than once: keep side effects outside the database out of it. */
  readonly attempt: number
  /** Aborted by the caller's signal or the deadline; pass it to whatever the body waits for. */
  readonly signal: AbortSignal | undefined
  /** Milliseconds left before the deadline, if there is one. */
  remainingMs(): number | undefined
}

/** How a transaction starts. */
export interface Start {
  /** Its first statement, made when there is a connection to send it on. `startedMs`: since when it is waited for. */
  readonly opening?: ((startedMs: number) => Statement | undefined) | undefined
  /** Whether that statement sets the lock's marker. */
  readonly marked?: boolean | undefined
  /** Longest wait for a connection while all are in use. */
  readonly withinMs?: number | undefined
  /** The body begins with a wait of its own, for the same as where BEGIN waits. */
  readonly bodyWaits?: boolean | undefined
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
  const waitForStandby = options.durable === true ? standbyWaiter(driver.engine) : undefined
  const here: OpenTransaction = { driver, outer: openTransactions.getStore(), open: true }
  const events = TxEvents.start(room)
  let connected = false
  const inside: TransactionBody<Tx, T> = (transaction, attempt, startedMs, opened) => {
    connected = true
    events?.opened()
    const running = whole(openTransactions.run(here, body, transaction, attempt, startedMs, opened))
    return waitForStandby === undefined ? running : followed(waitForStandby, running, transaction)
  }
  const once = (number: number, leftMs: number): Promise<T> =>
    admission((start) => {
      events?.begins(number)
      connected = false
      const how: Starting = {
        opening: start.opening,
        marked: start.marked,
        bodyWaits: start.bodyWaits,
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
      codeOf: driver.engine.codeOf,
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

/** Fails if the body has left a part of its work to whoever gets its result: by then the transaction is over. */
async function whole<T>(running: Promise<T>): Promise<T> {
  return awaited(await running)
}

/** @throws ENGINE_NOT_OFFERED */
function standbyWaiter({ waitForStandby }: Engine): Statement {
  if (waitForStandby !== undefined) return waitForStandby
  throw holdfastError('ENGINE_NOT_OFFERED', { details: { subject: 'durable' } })
}

/** Makes COMMIT wait for the standby also if the body has written nothing. */
async function followed<Tx, T>(
  waitForStandby: Statement,
  running: Promise<T>,
  transaction: Transaction<Tx>,
): Promise<T> {
  const result = await running
  try {
    await transaction.query(waitForStandby)
  } catch (error) {
    throw rolledBack(error)
  }
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
        bodyWaits: start.bodyWaits,
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
        bodyWaits: start.bodyWaits,
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
