import { holdfastError } from '../core/errors.ts'
import type { LossReason, RenewalFailedEvent } from '../core/events/event-map.ts'
import { channels, publish } from '../core/events.ts'
import { LeaseKeeper } from '../core/lease-keeper.ts'
import type { HeldLeaseName, LeaseCalls, ReleaseState } from './engine.ts'
import type { LeaseTerms } from './lease-terms.ts'

const gone = new WeakMap<AbortSignal, AbortSignal>()

/**
 * By the signal of a lease: aborted when there is nothing left of it to give back. That is later than the lease's own
 * where a release has no answer yet, has failed, or is part of a transaction that may roll back.
 */
export function goneSignal(signal: AbortSignal): AbortSignal {
  return gone.get(signal) ?? signal
}

/**
 * A lease that was acquired: has it renewed, and says stop when it is lost or may be.
 */
export class HeldLease {
  readonly held: HeldLeaseName
  readonly #schema: string
  readonly #terms: LeaseTerms
  readonly #keeper: LeaseKeeper
  readonly #calls: LeaseCalls
  readonly #over = new AbortController()
  readonly #gone = new AbortController()
  readonly #acquired = performance.now()
  /** The server holds it no longer than this. */
  #expires = 0
  #goneTimer: NodeJS.Timeout | undefined
  /** What the server said to a release of its own. */
  #released: ReleaseState | undefined

  constructor(
    schema: string,
    held: HeldLeaseName,
    terms: LeaseTerms,
    calls: LeaseCalls,
    sentAt: number,
    /** When it was first asked for. */
    since: number,
  ) {
    this.#schema = schema
    this.held = held
    this.#terms = terms
    this.#calls = calls
    gone.set(this.#over.signal, this.#gone.signal)
    const { name, token } = held
    const kept = {
      lastsMs: terms.ttlMs - terms.stopBeforeMs,
      everyMs: terms.renewMs,
      renew: () => this.renew(0),
      failed: (error: unknown) => {
        const event: RenewalFailedEvent = { name, token, remainingMs: this.remainingMs(), error }
        publish(channels.leaseRenewalFailed, event)
      },
      over: () => void this.lose('deadline'),
    }
    this.#keeper = new LeaseKeeper(kept, sentAt)
    this.#expires = performance.now() + terms.ttlMs
    publish(channels.leaseAcquired, { name, token, waitMs: this.#acquired - since })
  }

  /**
   * Looks at the clock first: a process that stood still goes on in the middle of its work, and its timers come later
   * than that.
   */
  get signal(): AbortSignal {
    if (!this.over && performance.now() >= this.#keeper.deadline) this.lose('deadline')
    return this.#over.signal
  }

  get over(): boolean {
    return this.#over.signal.aborted
  }

  remainingMs(): number {
    return this.signal.aborted ? 0 : Math.max(0, this.#keeper.deadline - performance.now())
  }

  /** True if it is held for another `ttl`; false if it is lost. */
  async renew(forMs: number = this.remainingMs()): Promise<boolean> {
    if (this.over) return false
    const sentAt = performance.now()
    const state = await this.#calls.renew(this.#schema, this.held, forMs)
    if (this.over) return false
    if (state !== 'held') {
      this.lose(state)
      return false
    }
    this.#keeper.extend(sentAt)
    this.#expires = performance.now() + this.#terms.ttlMs
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
  async release(joined?: Pick<LeaseCalls, 'release'>): Promise<ReleaseState> {
    if (joined === undefined && this.#released !== undefined) return this.#released
    const reason =
      joined === undefined
        ? 'the lease was released'
        : 'the lease is released when its transaction commits'
    if (!this.over) {
      this.#end(new DOMException(reason, 'AbortError'))
      const leftMs = Math.max(0, this.#expires - performance.now())
      this.#goneTimer = setTimeout(() => this.#gone.abort(), leftMs)
      this.#goneTimer.unref()
    }
    const state = await (joined ?? this.#calls).release(this.#schema, this.held)
    if (joined === undefined) {
      this.#released = state
      clearTimeout(this.#goneTimer)
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
    this.#keeper.stop()
    this.#over.abort(reason)
  }
}
