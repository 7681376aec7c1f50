import { AsyncLocalStorage } from 'node:async_hooks'
import type { Driver, Transaction } from '../core/driver.ts'
import { atMost, type WaitTerms } from '../core/options/wait.ts'
import { within } from '../core/within.ts'
import { processWide } from '../core/process-wide.ts'

/** Calls of one transaction that are made at once, behind each other. */
interface Line {
  /** Until the last of them is over; never rejects, and never gives nothing. */
  last: Promise<readonly unknown[]> | undefined
}

/** One that is at work. */
interface Turn {
  readonly handle: object
  /** For calls that its own body makes. */
  readonly inner: Line
  readonly outer: Turn | undefined
  over: boolean
}

/** What a call that has to wait for its turn is told. */
export interface TurnTerms {
  /** How the call waits; the wait for its turn is a part of it. */
  readonly wait: WaitTerms
  /** The turn did not come in time. */
  late(): Error
  /** The transaction that the call was made in has ended meanwhile. */
  outside(): Error
}

const lines = /* @__PURE__ */ processWide('lines/1', () => new WeakMap<object, Line>())
const turns = /* @__PURE__ */ processWide('turns/1', () => new AsyncLocalStorage<Turn>())

/**
 * Runs calls of one transaction one after the other, though its body made them at once. Each sets limits and puts back
 * what it found, or opens a savepoint: what another one does meanwhile would be done under those limits, or undone with
 * that savepoint. Calls that the body of a call makes are part of it, and have a line of their own.
 */
export function inTurn<Tx, T>(
  driver: Driver<Tx>,
  tx: Tx,
  terms: TurnTerms,
  run: (transaction: Transaction<Tx>, left: WaitTerms) => Promise<T>,
): Promise<T> {
  const transaction = driver.join(tx)
  const handle = tx as object
  const outer = turns.getStore()
  const line = lineOf(handle, outer)
  const turn: Turn = { handle, inner: { last: undefined }, outer, over: false }
  const take = (left: WaitTerms): Promise<T> => turns.run(turn, () => run(transaction, left))
  const before = line.last
  const running = before === undefined ? take(terms.wait) : behind(before, transaction, terms, take)
  const leave = (): void => {
    turn.over = true
    if (line.last === over) line.last = undefined
  }
  // Who gives up waiting leaves its place, and not the one before it.
  const over: Promise<readonly unknown[]> = Promise.all([before, running.then(leave, leave)])
  line.last = over
  return running
}

function lineOf(handle: object, around: Turn | undefined): Line {
  for (let turn = around; turn !== undefined; turn = turn.outer) {
    if (turn.handle === handle && !turn.over) return turn.inner
  }
  const known = lines.get(handle)
  if (known !== undefined) return known
  const made: Line = { last: undefined }
  lines.set(handle, made)
  return made
}

/** A client can be used for the next transaction when this one is over: who waited must not end up in that. */
async function behind<Tx, T>(
  before: Promise<readonly unknown[]>,
  transaction: Transaction<Tx>,
  terms: TurnTerms,
  take: (left: WaitTerms) => Promise<T>,
): Promise<T> {
  const { wait } = terms
  const ends = performance.now() + (wait.limitMs ?? Infinity)
  const endings = transaction.endings?.()
  const isLimited = wait.how === 'wait' && wait.limitMs !== undefined
  const came = isLimited ? await within(before, wait.limitMs) : await before
  if (came === undefined) throw terms.late()
  if (transaction.endings?.() !== endings) throw terms.outside()
  return await take(wait.limitMs === undefined ? wait : atMost(wait, ends - performance.now()))
}
