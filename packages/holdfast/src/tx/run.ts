import { AsyncLocalStorage } from 'node:async_hooks'
import type { Scope } from '../core/bucket.ts'
import type { Driver, Isolation, Row, Statement, Transaction } from '../core/driver.ts'
import { holdfastError } from '../core/errors.ts'
import { isTraced, traced } from '../core/tracing.ts'
import { within } from '../core/within.ts'
import {
  cancelTransaction,
  waitForStandby,
  whichTransaction,
} from '../engines/postgres/transaction.ts'
import { type RetryInfo, type RetryPolicy, retryDefaults, retrying } from './retry.ts'
import { TxEvents } from './tx-events.ts'

/** How a transaction that Holdfast opens is run. */
export interface RunOptions {
  /** The server's default level unless named. */
  readonly isolation?: Isolation
  /** Limit for all attempts together, in milliseconds from the call. */
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

/** The work of one attempt. `opened` is the answer to `opening`, if the driver could send it. */
export type TransactionBody<Tx, T> = (
  transaction: Transaction<Tx>,
  attempt: Attempt,
  opened?: Promise<readonly Row[]>,
) => Promise<T>

interface OpenTransaction {
  readonly driver: object
  readonly outer: OpenTransaction | undefined
  open: boolean
}

/** Which transactions the running code is inside of, so that a second one is refused, not hung. */
const current = new AsyncLocalStorage<OpenTransaction>()

/** Throws if the running code is inside a transaction that this driver opened. */
export function assertNotNested(driver: object): void {
  for (let at = current.getStore(); at !== undefined; at = at.outer) {
    if (at.open && at.driver === driver) throw holdfastError('TX_NESTED')
  }
}

/**
 * Opens a transaction, runs the body, commits; runs the *whole* of it again when PostgreSQL says
 * it conflicted. Rooms use this; callers use it through `tx.run` and `guard`. `room` is who asks.
 */
export async function runTransaction<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  options: RoutedOptions = {},
  opening?: Statement,
  room = 'tx',
): Promise<T> {
  assertNotNested(driver)
  // The span of a guard is that of its transaction.
  if (!isTraced() || room === 'guard')
    return await runAttempts(driver, body, options, opening, room)
  return await traced(
    'transaction',
    () => ({ target: room, attributes: { 'holdfast.room': room } }),
    () => runAttempts(driver, body, options, opening, room),
  )
}

async function runAttempts<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  options: RoutedOptions,
  opening: Statement | undefined,
  room: string,
): Promise<T> {
  const limits = new Limits(options)
  const here: OpenTransaction = { driver, outer: current.getStore(), open: true }
  const events = TxEvents.start(room)
  const inside: TransactionBody<Tx, T> = (transaction, attempt, opened) => {
    events?.opened()
    const running = current.run(here, body, transaction, attempt, opened)
    return options.durable === true ? followed(running, transaction) : running
  }
  const once = (number: number): Promise<T> => {
    events?.begins(number)
    return limits.signal === undefined
      ? attemptPlain(driver, inside, options, number, opening)
      : attemptCancellable(driver, inside, options, number, limits, limits.signal)
  }
  try {
    const { signal } = limits
    const policy = retryPolicy(options.retry)
    const forMs = options.retry === false ? 0 : policy.budgetMs
    const result = await retrying(once, {
      policy,
      patient: { codes: ['CONNECTION_UNAVAILABLE'], forMs },
      signal,
      onRetry: options.onRetry,
    })
    events?.committed()
    return result
  } catch (error) {
    events?.failed(error)
    throw error
  } finally {
    here.open = false
    limits.end()
  }
}

/** Makes COMMIT wait for the standby also if the body has written nothing. */
async function followed<Tx, T>(running: Promise<T>, transaction: Transaction<Tx>): Promise<T> {
  const result = await running
  await transaction.query(waitForStandby)
  return result
}

function retryPolicy(retry: RunOptions['retry']): Required<RetryPolicy> {
  if (retry === undefined) return retryDefaults
  return retry === false ? { ...retryDefaults, attempts: 1 } : { ...retryDefaults, ...retry }
}

const noScopes: readonly Scope[] = []

/** Nothing can end it early, so it may wait in the very statement it begins with. */
function attemptPlain<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  { scopes = noScopes, isolation }: RoutedOptions,
  number: number,
  opening: Statement | undefined,
): Promise<T> {
  const attempt: Attempt = { attempt: number, signal: undefined, remainingMs: () => undefined }
  return driver.transaction((transaction, opened) => body(transaction, attempt, opened), {
    scopes,
    isolation,
    opening,
  })
}

/** To be cancelled, a transaction has to be known by its backend before it may wait. */
async function attemptCancellable<Tx, T>(
  driver: Driver<Tx>,
  body: TransactionBody<Tx, T>,
  { scopes = noScopes, isolation }: RoutedOptions,
  number: number,
  limits: Limits,
  signal: AbortSignal,
): Promise<T> {
  signal.throwIfAborted()
  const attempt: Attempt = { attempt: number, signal, remainingMs: () => limits.remainingMs() }
  let started = false
  let finished = false
  const transacting = driver.transaction(
    async (transaction) => {
      signal.throwIfAborted()
      started = true
      const result = await cancellable(driver, transaction, signal, () =>
        body(transaction, attempt),
      )
      finished = true
      return result
    },
    { scopes, isolation, timeoutMs: limits.remainingMs() },
  )
  try {
    return await unlessAborted(transacting, signal, () => !started)
  } catch (error) {
    // Before COMMIT an abort is the reason, whatever the cancelled statement said.
    if (!finished && signal.aborted) throw signal.reason
    throw error
  }
}

/** Lets go of a transaction that is still queueing for a connection; a started one runs its course. */
async function unlessAborted<T>(
  transacting: Promise<T>,
  signal: AbortSignal,
  mayLeave: () => boolean,
): Promise<T> {
  let onAbort: () => void = () => undefined
  const leaving = new Promise<never>((_, reject) => {
    onAbort = () => {
      if (mayLeave()) reject(signal.reason as Error)
    }
    signal.addEventListener('abort', onAbort, { once: true })
  })
  try {
    return await Promise.race([transacting, leaving])
  } finally {
    signal.removeEventListener('abort', onAbort)
    // An abandoned one rejects later, with the reason we already gave.
    transacting.catch(() => undefined)
  }
}

/** How long a cancel request may keep us from rolling back; after that the rollback goes first. */
const cancelLimitMs = 1_000

/**
 * Runs the body so that an abort cancels the statement it is waiting for. The transaction is given
 * back only when the body has returned: a client handle must never be used by two at once.
 */
async function cancellable<Tx, T>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  signal: AbortSignal,
  run: () => Promise<T>,
): Promise<T> {
  const [which] = await transaction.query(whichTransaction)
  let cancelling: Promise<unknown> | undefined
  const onAbort = (): void => {
    const cancel = cancelTransaction(Number(which?.['pid']), String(which?.['began']))
    // Best effort: if no connection is free to cancel with, the body ends by itself or by limit.
    cancelling = (transaction.beside ?? driver.alone).query(cancel)
    cancelling.catch(() => undefined)
  }
  signal.throwIfAborted()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const result = await run()
    signal.throwIfAborted()
    return result
  } finally {
    signal.removeEventListener('abort', onAbort)
    if (cancelling !== undefined) await within(cancelling, cancelLimitMs)
  }
}

/** The caller's signal and the deadline as one signal; nothing at all if neither was given. */
class Limits {
  readonly signal: AbortSignal | undefined
  readonly #deadline: number | undefined
  readonly #timer: NodeJS.Timeout | undefined

  constructor(options: Pick<RunOptions, 'deadlineMs' | 'signal'>) {
    const { deadlineMs, signal } = options
    if (deadlineMs === undefined) {
      this.signal = signal
      return
    }
    if (!Number.isFinite(deadlineMs) || deadlineMs <= 0) {
      throw holdfastError('OPTION_INVALID', {
        details: { option: 'deadlineMs', subject: 'deadlineMs' },
      })
    }
    const timeUp = new AbortController()
    this.#deadline = performance.now() + deadlineMs
    this.#timer = setTimeout(() => timeUp.abort(holdfastError('TX_DEADLINE')), deadlineMs)
    this.signal = signal === undefined ? timeUp.signal : AbortSignal.any([signal, timeUp.signal])
  }

  remainingMs(): number | undefined {
    if (this.#deadline === undefined) return undefined
    return Math.max(1, Math.ceil(this.#deadline - performance.now()))
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}
