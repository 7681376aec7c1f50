/** A lease is renewed so often that two renewals may fail before it ends. */
export const renewalsPerLease = 3

/** How soon a renewal that failed is tried again, as a part of the usual pause. */
const retryShare = 4

/** A lease, as far as keeping it goes. */
export interface Keepable {
  /** For how long its holder may work on after a request was sent that was granted. */
  readonly lastsMs: number
  /** The usual pause between two renewals; `undefined` leaves them to the holder. */
  readonly everyMs: number | undefined
  /** Asks the server. Calls `extend` if it is held for longer; rejects if nobody knows. */
  renew(): Promise<unknown>
  /** A renewal has rejected; another one follows. */
  failed?(error: unknown): void
  /** The time is over without a renewal: the lease is lost, whether or not anybody else has it. */
  over(): void
}

/**
 * Renews a lease until it is stopped, and says when it is over. It counts by the monotonic clock, from before a request
 * was sent: never later than what the server counts from. It keeps no process running.
 */
export class LeaseKeeper {
  readonly #lease: Keepable
  #deadline = 0
  #end: NodeJS.Timeout | undefined
  #renewal: NodeJS.Timeout | undefined
  #stopped = false

  constructor(lease: Keepable, sentMs: number) {
    this.#lease = lease
    this.extend(sentMs)
    this.#plan(1)
  }

  /** When the lease is over, by `performance.now()`. */
  get deadline(): number {
    return this.#deadline
  }

  get stopped(): boolean {
    return this.#stopped
  }

  /** A request was granted that was sent at this moment. */
  extend(sentMs: number): void {
    if (this.#stopped) return
    this.#deadline = sentMs + this.#lease.lastsMs
    clearTimeout(this.#end)
    const leftMs = Math.max(0, this.#deadline - performance.now())
    this.#end = setTimeout(() => this.#lease.over(), leftMs)
    this.#end.unref()
  }

  stop(): void {
    this.#stopped = true
    clearTimeout(this.#end)
    clearTimeout(this.#renewal)
  }

  #plan(share: number): void {
    const { everyMs } = this.#lease
    if (this.#stopped || everyMs === undefined) return
    this.#renewal = setTimeout(() => void this.#renew(), everyMs / share)
    this.#renewal.unref()
  }

  async #renew(): Promise<void> {
    try {
      await this.#lease.renew()
      this.#plan(1)
    } catch (error) {
      this.#lease.failed?.(error)
      this.#plan(retryShare)
    }
  }
}
