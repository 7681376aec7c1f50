import { holdfastError } from '../core/errors.ts'
import type { LossReason, RenewalFailedEvent } from '../core/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { type HeldLeaseName, releaseLease, renewLease } from '../engines/postgres/leases/leases.ts'
import type { LeaseTerms } from './lease-terms.ts'
import type { RunCall } from './run-call.ts'

/** How soon a renewal that failed is tried again, as a part of its usual pause. */
const retryShare = 4

const gone = new WeakMap<AbortSignal, AbortSignal>()

/**
 * By the signal of a lease: aborted when there is nothing left of it to give back. That is later than the lease's own
 * where a release has no answer yet, has failed, or is part of a transaction that may roll back.
 */
export function goneSignal(signal: AbortSignal): AbortSignal {
  return gone.get(signal) ?? signal
}

/**
 * A lease that was acquired: renews it, and says stop when it is lost or may be. What it knows by
 * itself is a moment of the monotonic clock, counted from before the request was sent: never later
 * than what the server counts from.
 */
export class HeldLease {
  readonly held: HeldLeaseName
  readonly #schema: string
  readonly #terms: LeaseTerms
  readonly #run: RunCall
  readonly #over = new AbortController()
  readonly #gone = new AbortController()
  readonly #acquired = performance.now()
  #deadline = 0
  /** The server holds it no longer than this. */
  #expires = 0
  #stopTimer: NodeJS.Timeout | undefined
  #renewTimer: NodeJS.Timeout | undefined
  /** What the server said to a release of its own. */
  #released: string | null | undefined

  constructor(
    schema: string,
    held: HeldLeaseName,
    terms: LeaseTerms,
    run: RunCall,
    sentAt: number,
    /** When it was first asked for. */
    since: number,
  ) {
    this.#schema = schema
    this.held = held
    this.#terms = terms
    this.#run = run
    gone.set(this.#over.signal, this.#gone.signal)
    this.#extend(sentAt)
    this.#plan(1)
    const { name, token } = held
    publish(channels.leaseAcquired, { name, token, waitMs: this.#acquired - since })
  }

  /**
   * Looks at the clock first: a process that stood still goes on in the middle of its work, and its timers come later
   * than that.
   */
  get signal(): AbortSignal {
    if (!this.over && performance.now() >= this.#deadline) this.lose('deadline')
    return this.#over.signal
  }

  get over(): boolean {
    return this.#over.signal.aborted
  }

  remainingMs(): number {
    return this.signal.aborted ? 0 : Math.max(0, this.#deadline - performance.now())
  }

  /** True if it is held for another `ttl`; false if it is lost. */
  async renew(forMs: number = this.remainingMs()): Promise<boolean> {
    if (this.over) return false
    const sentAt = performance.now()
    const state = await this.#run(renewLease(this.#schema, this.held), forMs)
    if (this.over) return false
    if (state !== 'held') {
      this.lose((state ?? 'unknown') as LossReason)
      return false
    }
    this.#extend(sentAt)
    if (channels.leaseRenewed.hasSubscribers) {
      const { name, token } = this.held
      channels.leaseRenewed.publish({ name, token, durationMs: performance.now() - sentAt })
    }
    return true
  }

  /** The server, the clock or the connection said so. */
  lose(reason: LossReason): Error {
    const { name, token } = this.held
    const error = holdfastError('LEASE_LOST', { about: reason, details: { subject: name, reason } })
    if (!this.over) {
      this.#end(error)
      this.#gone.abort()
      publish(channels.leaseLost, { name, token, reason })
    }
    return error
  }

  /**
   * No more renewals: whoever releases it, with or without a transaction, means it. With `joined`, in the transaction of
   * somebody else: nobody tells us whether that commits.
   */
  async release(joined?: RunCall): Promise<string | null> {
    if (joined === undefined && this.#released !== undefined) return this.#released
    const reason =
      joined === undefined
        ? 'the lease was released'
        : 'the lease is released when its transaction commits'
    if (!this.over) {
      this.#end(new DOMException(reason, 'AbortError'))
      const leftMs = Math.max(0, this.#expires - performance.now())
      this.#stopTimer = setTimeout(() => this.#gone.abort(), leftMs)
      this.#stopTimer.unref()
    }
    const state = await (joined ?? this.#run)(releaseLease(this.#schema, this.held))
    if (joined === undefined) {
      this.#released = state
      clearTimeout(this.#stopTimer)
      this.#gone.abort()
    }
    if (state === 'released') {
      const { name, token } = this.held
      publish(channels.leaseReleased, { name, token, heldMs: performance.now() - this.#acquired })
    }
    return state
  }

  /** No more renewals, and nothing is given back: whoever has it is still at work. It ends by itself. */
  leave(reason: Error): void {
    if (!this.over) this.#end(reason)
    this.#gone.abort()
  }

  #end(reason: Error): void {
    clearTimeout(this.#stopTimer)
    clearTimeout(this.#renewTimer)
    this.#over.abort(reason)
  }

  #extend(sentAt: number): void {
    const { ttlMs, stopBeforeMs } = this.#terms
    this.#deadline = sentAt + ttlMs - stopBeforeMs
    this.#expires = performance.now() + ttlMs
    clearTimeout(this.#stopTimer)
    this.#stopTimer = setTimeout(
      () => this.lose('deadline'),
      Math.max(0, this.#deadline - performance.now()),
    )
    this.#stopTimer.unref()
  }

  #plan(share: number): void {
    const { renewMs } = this.#terms
    if (renewMs === undefined || this.over) return
    this.#renewTimer = setTimeout(() => void this.#renewNow(), renewMs / share)
    this.#renewTimer.unref()
  }

  async #renewNow(): Promise<void> {
    try {
      await this.renew(0)
      this.#plan(1)
    } catch (error) {
      const { name, token } = this.held
      const event: RenewalFailedEvent = { name, token, remainingMs: this.remainingMs(), error }
      publish(channels.leaseRenewalFailed, event)
      this.#plan(retryShare)
    }
  }
}
