import { pause } from '../../../core/backoff.ts'
import { processWide } from '../../../core/process-wide.ts'
import { isBusy } from '../result-code.ts'
import type { Blocker } from '../../../core/events/event-map.ts'

/** Ends a wait in this process, as SQLite would end it between processes. */
class WriterTaken extends Error {
  readonly code = 'SQLITE_BUSY'
}

/** Between two questions whether the file is free. */
const askAgainMs = { least: 1, spread: 4 }
/** After a transaction, where another process was seen to want to write: long enough for its next question. */
const restMs = 6
/** For how long one that was met counts. */
const metForMs = 1_000

/** How long it is waited, and what may end the wait. */
export interface WaitLimits {
  readonly attempt: boolean
  readonly limitMs: number | undefined
  readonly signal: AbortSignal | undefined
}

interface Waiter {
  come(): void
}

/** The right of one transaction of this process to ask for the file, and to write once it has it. */
export class Turn {
  readonly names: readonly string[]
  readonly since: number = performance.now()
  /** It has the file. Until then somebody else may have it, of whom nothing is known. */
  writes = false
  readonly #over: () => void

  constructor(names: readonly string[], over: () => void) {
    this.names = names
    this.#over = over
  }

  end(): void {
    this.#over()
  }
}

/**
 * Who writes to one file. SQLite lets one transaction write at a time, tells the others that it is busy, and knows no
 * queue. So transactions of this process come one after the other, and the first of them asks SQLite until it is free.
 * Nothing here excludes anybody: that does BEGIN IMMEDIATE.
 */
export class Writer {
  /** By its full name as SQLite has it. */
  readonly file: string
  #turn: Turn | undefined
  readonly #line: Waiter[] = []
  #metAt = -Infinity
  #restUntil = 0

  constructor(file: string) {
    this.file = file
  }

  /** @throws what `isBusy` knows when it did not come in time; the signal's reason */
  async turn(names: readonly string[], { attempt, limitMs, signal }: WaitLimits): Promise<Turn> {
    signal?.throwIfAborted()
    if (this.#turn === undefined && this.#line.length === 0 && (attempt || !this.#rests))
      return this.#begin(names)
    if (attempt || limitMs === 0)
      throw new WriterTaken('another transaction of this process goes first')
    const { promise, resolve, reject } = Promise.withResolvers<Turn>()
    const waiter: Waiter = {
      come: () => resolve(this.#begin(names)),
    }
    const leave = (error: Error): void => {
      const at = this.#line.indexOf(waiter)
      if (at === -1) return
      this.#line.splice(at, 1)
      reject(error)
    }
    const onAbort = (): void => leave(signal?.reason as Error)
    const timer =
      limitMs === undefined
        ? undefined
        : setTimeout(
            () => leave(new WriterTaken('another transaction of this process goes first')),
            limitMs,
          )
    signal?.addEventListener('abort', onAbort, { once: true })
    this.#line.push(waiter)
    this.#next()
    try {
      return await promise
    } finally {
      clearTimeout(timer)
      signal?.removeEventListener('abort', onAbort)
    }
  }

  /** Asks until nobody else writes. @throws what `isBusy` knows when the wait is over; the signal's reason */
  async untilFree<T>(ask: () => T, { attempt, limitMs, signal }: WaitLimits): Promise<Awaited<T>> {
    const ends = performance.now() + (limitMs ?? Infinity)
    while (true) {
      try {
        return await ask()
      } catch (error) {
        if (!isBusy(error)) throw error
        this.#metAt = performance.now()
        const leftMs = ends - this.#metAt
        if (attempt || leftMs <= 0) throw error
        const { least, spread } = askAgainMs
        await pause(Math.min(leftMs, least + Math.random() * spread), signal)
      }
    }
  }

  /** The transaction of this process that writes, if there is one; SQLite does not tell about others. */
  holders(names?: readonly string[]): readonly Blocker[] {
    const turn = this.#turn
    if (turn?.writes !== true) return []
    if (names !== undefined && !names.some((name) => turn.names.includes(name))) return []
    const [name = 'a transaction without a lock'] = turn.names
    const ageMs = performance.now() - turn.since
    return [{ pid: process.pid, name, ageMs, state: 'unknown', query: '' }]
  }

  get #rests(): boolean {
    return performance.now() < this.#restUntil
  }

  #begin(names: readonly string[]): Turn {
    const turn = new Turn(names, () => {
      if (this.#turn !== turn) return
      this.#turn = undefined
      const now = performance.now()
      // Whoever ends a transaction is the next to ask, unless it lets the others: SQLite's own order is no order.
      if (now - this.#metAt < metForMs) this.#restUntil = now + Math.random() * restMs
      this.#next()
    })
    this.#turn = turn
    return turn
  }

  #next(): void {
    if (this.#turn !== undefined || this.#line.length === 0) return
    const leftMs = this.#restUntil - performance.now()
    if (leftMs > 0) {
      setTimeout(() => this.#next(), leftMs)
      return
    }
    this.#line.shift()?.come()
  }
}

const writers = /* @__PURE__ */ processWide('sqlite-writers/1', () => new Map<string, Writer>())

/** That of a file, by its full name as SQLite has it: whatever opens it in this process meets here. */
export function writerOf(file: string): Writer {
  const known = writers.get(file)
  if (known !== undefined) return known
  const made = new Writer(file)
  writers.set(file, made)
  return made
}
