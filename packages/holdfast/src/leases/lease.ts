import type { Driver } from '../core/driver.ts'
import type { LossReason } from '../core/event-map.ts'
import { guardLease, type LeaseName } from '../engines/postgres/leases/leases.ts'
import { callFunction } from '../engines/postgres/sql/call-function.ts'
import type { HeldLease } from './held-lease.ts'

/**
 * Exclusion that outlives a transaction. It can be lost at any moment, a pause of the process is
 * enough: what must not happen after that belongs into a transaction behind `guard`.
 */
export interface Lease<Tx> extends AsyncDisposable {
  readonly name: string
  /**
   * The fencing token: higher than that of every holder before, also after the lease was forgotten.
   * Hand it to whatever can refuse a lower one.
   */
  readonly token: bigint
  /**
   * Aborted when the lease is lost, and before it can be somebody else's if no renewal gets
   * through. The reason is LEASE_LOST, with the cause in `details.reason`.
   */
  readonly signal: AbortSignal
  /** Milliseconds until `signal` is aborted unless a renewal gets through; 0 once it is. */
  remainingMs(): number
  /**
   * Makes the transaction depend on the lease: throws if it is lost, and otherwise nobody can take
   * it over until this transaction ends. Call it before the protected write, or after it, but in
   * the same transaction.
   *
   * @example
   * await hf.transaction(async (tx) => {
   *   await lease.guard(tx)
   *   await tx.query('UPDATE report SET …')
   * })
   * @throws LEASE_LOST, LEASE_OUTSIDE_TRANSACTION
   */
  guard(tx: Tx): Promise<void>
  /** Renews it now, for another `ttl`. False if it is lost; then `signal` is aborted as well. */
  renew(): Promise<boolean>
  /**
   * Gives it back, and aborts `signal`. False if it was lost before. With `tx` it is free when that
   * transaction commits; it is not renewed any more, whether it does or not. After a rollback it is held until it
   * expires, or until it is released once more; `close` does so.
   *
   * @throws LEASE_OUTSIDE_TRANSACTION
   */
  release(tx?: Tx): Promise<boolean>
}

/** What the fence is about: who holds which lease. */
export interface LeaseToken extends LeaseName {
  readonly token: bigint
}

const outside = 'LEASE_OUTSIDE_TRANSACTION'

/** Why the token is worth nothing, or `undefined`: then it stays worth something until `tx` ends. */
export async function fence<Tx>(
  driver: Driver<Tx>,
  schema: string,
  tx: Tx,
  token: LeaseToken,
): Promise<LossReason | undefined> {
  const state = await callFunction(driver, tx, guardLease(schema, token), outside)
  return state === 'held' ? undefined : ((state ?? 'unknown') as LossReason)
}

/** A lease as its holder sees it. */
export function leaseOn<Tx>(driver: Driver<Tx>, schema: string, held: HeldLease): Lease<Tx> {
  const lease: Lease<Tx> = {
    name: held.held.name,
    token: held.held.token,
    get signal() {
      return held.signal
    },
    remainingMs: () => held.remainingMs(),
    async guard(tx) {
      const reason = await fence(driver, schema, tx, held.held)
      if (reason !== undefined) throw held.lose(reason)
    },
    renew: () => held.renew(),
    async release(tx) {
      if (tx === undefined) return (await held.release()) === 'released'
      return (await held.release((call) => callFunction(driver, tx, call, outside))) === 'released'
    },
    [Symbol.asyncDispose]: async () => {
      await lease.release()
    },
  }
  return lease
}
