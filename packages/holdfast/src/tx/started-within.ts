import type { Driver } from '../core/driver.ts'
import { timerMs } from '../core/options/duration.ts'
import { holdfastError } from '../core/errors.ts'

/** How long a transaction waits for a connection. */
export interface StartLimits {
  /** While all connections are in use. */
  readonly withinMs: number | undefined
  /** Whatever the reason is. */
  readonly patienceMs: number
}

/** Later than a client's own limit, which knows better what to say. */
const laterMs = 20

/** How many transactions of ours each driver has open. */
const open = new WeakMap<object, { count: number }>()

/**
 * Gives up a transaction for which there is no connection in time: nobody waits for it any longer, and if
 * one is had after all, the transaction ends before its body runs. These clients do not say whether their
 * pool is used up or their server does not answer; if it serves transactions of ours, it answers.
 */
export function startedWithin<Tx, T>(
  driver: Driver<Tx>,
  limits: StartLimits,
  transact: (starts: () => void) => Promise<T>,
): Promise<T> {
  return driver.capabilities.connectsWithin === true
    ? transact(atOnce)
    : leftWhenLate(driver, limits, transact)
}

/** The driver says itself when there is no connection in time. */
function atOnce(): void {
  // Nobody watches the start.
}

async function leftWhenLate<Tx, T>(
  driver: Driver<Tx>,
  { withinMs = Infinity, patienceMs }: StartLimits,
  transact: (starts: () => void) => Promise<T>,
): Promise<T> {
  const ours = open.get(driver) ?? { count: 0 }
  open.set(driver, ours)
  let timer: NodeJS.Timeout | undefined
  let left: Error | undefined
  let started = false
  const late = new Promise<never>((_, reject) => {
    const look = (passedMs: number): void => {
      if (ours.count === 0 && passedMs < patienceMs) {
        timer = setTimeout(look, timerMs(patienceMs - passedMs), patienceMs)
        return
      }
      left = ours.count > 0 ? starved(ours.count) : unavailable(passedMs)
      reject(left)
    }
    const firstMs = Math.min(withinMs, patienceMs)
    timer = setTimeout(look, timerMs(firstMs + laterMs), firstMs)
  })
  const transacting = transact(() => {
    clearTimeout(timer)
    if (left !== undefined) throw left
    started = true
    ours.count += 1
  })
  try {
    return await Promise.race([transacting, late])
  } finally {
    clearTimeout(timer)
    if (started) ours.count -= 1
  }
}

function starved(transactions: number): Error {
  const subject = `${transactions} in transactions of Holdfast`
  return holdfastError('POOL_STARVED', { details: { subject, held: { transactions } } })
}

function unavailable(passedMs: number): Error {
  const subject = `none within ${Math.round(passedMs)} ms: the pool is used up, or the server does not answer`
  return holdfastError('CONNECTION_UNAVAILABLE', { details: { subject } })
}
