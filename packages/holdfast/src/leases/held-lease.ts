import { holdfastError } from '../core/errors.ts'
import { channels, publish } from '../core/events.ts'
import { type HeldLeaseName, releaseLease, renewLease } from '../engines/postgres/leases.ts'
import type { LeaseTerms } from './lease-terms.ts'
import type { RunCall } from './run-call.ts'

/**
 * Why a lease is no longer held. `deadline`: no renewal got through in time, so the work has to stop
 * before somebody else may begin. `expired`, `taken`, `released`, `unknown`: the server said so.
 * `connection`, `unlocked`: the session that held the lock is gone, or does not hold it.
 */
export type LossReason =
  | 'deadline'
  | 'expired'
  | 'taken'
  | 'released'
  | 'unknown'
  | 'connection'
  | 'unlocked'

/** Published on `holdfast:lease.lost`. */
export interface LeaseLostEvent {
  readonly name: string
  readonly token: bigint
  readonly reason: LossReason
}

/** Published on `holdfast:lease.renewal-failed`; another try follows, until the deadline. */
export interface RenewalFailedEvent {
  readonly name: string
  readonly token: bigint
  /** Until the signal is aborted. */
  readonly remainingMs: number
  readonly error: unknown
}

/** How soon a renewal that failed is tried again, as a part of its usual pause. */
const retryShare = 4

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
  #deadline = 0
  #stopTimer: NodeJS.Timeout | undefined
  #renewTimer: NodeJS.Timeout | undefined

  constructor(
    schema: string,
    held: HeldLeaseName,
    terms: LeaseTerms,
    run: RunCall,
    sentAt: number,
  ) {
    this.#schema = schema
    this.held = held
    this.#terms = terms
    this.#run = run
    this.#extend(sentAt)
    this.#plan(1)
    publish(channels.leaseAcquired, { name: held.name, token: held.token })
  }

  get signal(): AbortSignal {
    return this.#over.signal
  }

  get over(): boolean {
    return this.signal.aborted
  }

  remainingMs(): number {
    return this.over ? 0 : Math.max(0, this.#deadline - performance.now())
  }

  /** True if it is held for another `ttl`; false if it is lost. */
  async renew(): Promise<boolean> {
    if (this.over) return false
    const sentAt = performance.now()
    const state = await this.#run(renewLease(this.#schema, this.held))
    if (this.over) return false
    if (state !== 'held') {
      this.lose((state ?? 'unknown') as LossReason)
      return false
    }
    this.#extend(sentAt)
    return true
  }

  /** The server, the clock or the connection said so. */
  lose(reason: LossReason): Error {
    const { name, token } = this.held
    const error = holdfastError('LEASE_LOST', { details: { subject: name, reason } })
    if (!this.over) {
      this.#end(error)
      publish(channels.leaseLost, { name, token, reason } satisfies LeaseLostEvent)
    }
    return error
  }

  /** No more renewals: whoever releases it, with or without a transaction, means it. */
  async release(run: RunCall = this.#run): Promise<string | null> {
    if (!this.over) this.#end(new DOMException('the lease was released', 'AbortError'))
    return await run(releaseLease(this.#schema, this.held))
  }

  #end(reason: Error): void {
    clearTimeout(this.#stopTimer)
    clearTimeout(this.#renewTimer)
    this.#over.abort(reason)
  }

  #extend(sentAt: number): void {
    const { ttlMs, stopBeforeMs } = this.#terms
    this.#deadline = sentAt + ttlMs - stopBeforeMs
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
      await this.renew()
      this.#plan(1)
    } catch (error) {
      const { name, token } = this.held
      const event: RenewalFailedEvent = { name, token, remainingMs: this.remainingMs(), error }
      publish(channels.leaseRenewalFailed, event)
      this.#plan(retryShare)
    }
  }
}
