import type { Driver, Row, Statement, Transaction } from '../core/driver.ts'
import type { Engine } from '../core/engine.ts'
import { within } from '../core/within.ts'
import type { Limits } from './limits.ts'

/**
 * How long after the deadline the server's own limit has ended a statement. What still runs then began later than the
 * limit was set, or has another one.
 */
const lastResortMs = 40

/** Pauses before the next cancel request, doubling: one that comes between two statements ends neither. */
const againMs = { first: 100, most: 5_000 }

/**
 * Runs the body so that the deadline and an abort end the statement it is waiting for: the deadline by a limit that the
 * server itself keeps, what that does not end by a cancel request. The transaction is given back only when the body has
 * returned: a client handle must never be used by two at once.
 */
export async function cancellable<Tx, T>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  limits: Limits,
  opened: readonly Row[] | undefined,
  run: () => Promise<T>,
): Promise<T> {
  const { signal } = limits
  const cancel = await limited(driver, transaction, limits, opened)
  const over = Promise.withResolvers<true>()
  let cancelling: Promise<void> | undefined
  const onAbort = (): void => {
    cancelling = cancelUntil(over.promise, cancel, limits.isLate ? lastResortMs : 0)
  }
  signal.throwIfAborted()
  signal.addEventListener('abort', onAbort, { once: true })
  try {
    const result = await run()
    signal.throwIfAborted()
    return result
  } finally {
    over.resolve(true)
    signal.removeEventListener('abort', onAbort)
    // One that arrives late would end a statement of whoever has the connection next.
    await cancelling
  }
}

/** The server's limit, for a driver that sends it together with BEGIN; nothing without a deadline. */
export function serverLimit(engine: Engine, limits: Limits): Statement | undefined {
  const leftMs = limits.remainingMs()
  return leftMs === undefined ? undefined : engine.limitTransaction(leftMs)
}

/** Sets the server's limit, unless it was `opened` with it, and tells how to end what runs all the same. */
async function limited<Tx>(
  driver: Driver<Tx>,
  transaction: Transaction<Tx>,
  limits: Limits,
  opened: readonly Row[] | undefined,
): Promise<() => Promise<void>> {
  const { cancel, beside = driver.alone } = transaction
  const limit = opened === undefined ? serverLimit(driver.engine, limits) : undefined
  if (opened === undefined && limit === undefined && cancel !== undefined) return cancel
  const [which] = opened ?? (await transaction.query(limit ?? driver.engine.whichTransaction))
  if (cancel !== undefined) return cancel
  const named = driver.engine.cancelTransaction(Number(which?.['pid']), String(which?.['began']))
  return async () => {
    // It would queue for a connection with those that the deadline is to make room for.
    if (limits.isLate) return
    // Not waited for: it names the transaction, and does nothing where that is over.
    beside.query(named).catch(() => undefined)
  }
}

async function cancelUntil(
  over: Promise<true>,
  cancel: () => Promise<void>,
  firstMs: number,
): Promise<void> {
  if (firstMs > 0 && (await within(over, firstMs))) return
  for (let pauseMs = againMs.first; ; pauseMs = Math.min(2 * pauseMs, againMs.most)) {
    await cancel()
    if (await within(over, pauseMs)) return
  }
}
