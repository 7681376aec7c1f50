import { isHoldfastError } from '../core/errors.ts'
import type { TxEvent } from '../core/events/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { reasonOf } from '../core/errors/reason-of.ts'

const { txCommitted, txRolledBack, txUnknown } = channels

/** Tells how one transaction of ours went, all its attempts together. */
export class TxEvents {
  readonly #room: string
  readonly #began = performance.now()
  /** Undefined until it asks for a connection: a guard may wait for its turn before. */
  #attemptBegan: number | undefined
  #opened = 0
  #attempts = 0

  private constructor(room: string) {
    this.#room = room
  }

  /** Nothing if nobody listens. */
  static start(room: string): TxEvents | undefined {
    const heard =
      txCommitted.hasSubscribers || txRolledBack.hasSubscribers || txUnknown.hasSubscribers
    return heard ? new TxEvents(room) : undefined
  }

  /** It asks for a connection now. */
  begins(attempt: number): void {
    this.#attempts = attempt
    this.#opened = 0
    this.#attemptBegan = performance.now()
  }

  opened(): void {
    this.#opened = performance.now()
  }

  committed(): void {
    if (txCommitted.hasSubscribers) txCommitted.publish(this.#event())
  }

  failed(error: unknown): void {
    const unknown = isHoldfastError(error, 'COMMIT_UNKNOWN')
    publish(unknown ? txUnknown : txRolledBack, {
      ...this.#event(),
      reason: reasonOf(error),
      error,
    })
  }

  #event(): TxEvent {
    const now = performance.now()
    return {
      room: this.#room,
      attempts: this.#attempts,
      durationMs: now - this.#began,
      openMs: (this.#opened === 0 ? now : this.#opened) - (this.#attemptBegan ?? now),
    }
  }
}
