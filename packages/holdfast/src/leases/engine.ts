/** What this room asks of a database. Each engine that has leases brings one `LeaseEngine`. */
import type { Driver, Session } from '../core/driver.ts'
import type { EngineName } from '../core/engine.ts'
import type { LossReason } from '../core/events/event-map.ts'
import type { ResolveOptions } from '../tx/ask-again.ts'

/** A lease by name; the scope decides on which server it lives. */
export interface LeaseName {
  readonly scope: string
  readonly name: string
}

/** What the fence is about: who holds which lease. */
export interface LeaseToken extends LeaseName {
  readonly token: bigint
}

/** What a holder asks for. */
export interface LeaseRequest extends LeaseName {
  readonly owner: string
  readonly ttlMs: number
  readonly delayMs: number
  readonly note: string | undefined
  /** The lock of a session whose holder the lease belongs to. */
  readonly sessionLock: bigint | undefined
}

/** What a holder has. */
export interface HeldLeaseName extends LeaseToken {
  readonly owner: string
  readonly sessionLock: bigint | undefined
}

/** The token, higher than all before; or for how many milliseconds the lease is somebody else's for certain. */
export type Acquired = { readonly token: bigint } | { readonly freeInMs: number }

/** Whether the token still fits. */
export type LeaseState = 'held' | LossReason

/** `stacked`: the session had taken the lock twice, and has it still. */
export type ReleaseState = 'released' | 'stacked' | LossReason

/** What is known about a lease. */
export interface LeaseReading {
  /** `delayed`: it expired, and `delayAfterLoss` is not over yet. */
  readonly state: 'held' | 'delayed' | 'free'
  /** Of the holder, or of the last one. */
  readonly token: bigint
  readonly note: string | undefined
  /** By the server's clock. */
  readonly acquiredAt: Date | undefined
  readonly expiresAt: Date | undefined
}

/**
 * Calls that are transactions of their own, none of which waits for what a guard holds. An answer that is lost is asked
 * for again, as owner and token make it the same one. Of each: SCHEMA_MISSING.
 */
export interface LeaseCalls {
  /** Takes a lease that is free, or that this owner has already. Not sent if there is no connection in time. */
  acquire(schema: string, request: LeaseRequest, connectWithinMs: number): Promise<Acquired>
  /** Held for another `ttl`, unless it is lost; a lost answer is asked for no longer than `forMs`. */
  renew(schema: string, held: HeldLeaseName, forMs: number): Promise<LeaseState>
  release(schema: string, held: HeldLeaseName): Promise<ReleaseState>
  /** Nothing if it was never held. */
  read(schema: string, name: LeaseName): Promise<LeaseReading | undefined>
}

/** In the caller's transaction, which must really be open. @throws LEASE_OUTSIDE_TRANSACTION, SCHEMA_MISSING */
export interface LeaseCallsWithin {
  /** If it is held, nobody can take it over until the transaction ends. */
  guard(schema: string, token: LeaseToken): Promise<LeaseState>
  /** Free when the transaction commits. */
  release(schema: string, held: HeldLeaseName): Promise<ReleaseState>
}

export interface LeaseEngine {
  readonly of: EngineName
  /** On any connection. */
  alone<Tx>(driver: Driver<Tx>, options: ResolveOptions): LeaseCalls
  /**
   * On a session that loses its lock when its connection ends, and is seen to be dead within about `ttlMs`.
   *
   * @throws LEASE_SESSION_POOLED if the session is not ours alone
   */
  onSession(session: Session, ttlMs: number): Promise<LeaseCalls>
  within<Tx>(driver: Driver<Tx>, tx: Tx): LeaseCallsWithin
  /** Deletes rows of leases that nobody has held for so long, at most so many; says how many. @throws TX_NESTED */
  forget<Tx>(driver: Driver<Tx>, schema: string, idleMs: number, most: number): Promise<number>
}
