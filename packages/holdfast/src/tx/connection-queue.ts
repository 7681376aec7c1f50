import { timerMs } from '../core/options/duration.ts'
import type { Limits } from './limits.ts'

/**
 * One attempt while it waits for a connection and for BEGIN. It gives up by an abort, at its deadline, and when too little is left of
 * that. Nobody can be taken out of a client's queue, so a connection that comes afterwards is let go at once.
 */
export class ConnectionQueue {
  /** Rejects when it has given up; otherwise stays pending. */
  readonly given: Promise<never>
  readonly #limits: Limits
  readonly #startedMs: number
  readonly #timer: NodeJS.Timeout | undefined
  readonly #giveUp: () => void
  #left = false
  #connected = false
  #why: Error | undefined

  constructor(limits: Limits, startedMs: number) {
    this.#limits = limits
    this.#startedMs = startedMs
    const { promise, reject } = Promise.withResolvers<never>()
    // Most get their connection, and nobody waits for it then.
    promise.catch(() => undefined)
    this.given = promise
    this.#giveUp = () => {
      const { signal } = limits
      this.#why ??= signal.aborted ? (signal.reason as Error) : limits.notBegun()
      reject(this.#why)
    }
    limits.signal.addEventListener('abort', this.#giveUp, { once: true })
    const worthMs = limits.worthMs(startedMs)
    if (worthMs < Infinity) this.#timer = setTimeout(this.#giveUp, timerMs(Math.max(0, worthMs)))
  }

  /** There is a connection, and what BEGIN takes is not waiting for one. @throws why it is not wanted any more */
  assertIn(): void {
    if (!this.#connected && this.#limits.worthMs(this.#startedMs) < 0) this.#giveUp()
    if (this.#why !== undefined) throw this.#why
    this.#connected = true
    clearTimeout(this.#timer)
  }

  /** It has its connection, or it is over. */
  leave(): void {
    if (this.#left) return
    this.#left = true
    clearTimeout(this.#timer)
    this.#limits.signal.removeEventListener('abort', this.#giveUp)
  }
}
