import type { Driver } from '../core/driver.ts'
import type { LeaseEngine } from './engine.ts'
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

/** Where a lease is guarded. */
export interface LeasePlace<Tx> {
  readonly engine: LeaseEngine
  readonly driver: Driver<Tx>
  readonly schema: string
}

/** A lease as its holder sees it. */
export function leaseOn<Tx>(place: LeasePlace<Tx>, held: HeldLease): Lease<Tx> {
  const { engine, driver, schema } = place
  const lease: Lease<Tx> = {
    name: held.held.name,
    token: held.held.token,
    get signal() {
      return held.signal
    },
    remainingMs: () => held.remainingMs(),
    async guard(tx) {
      const state = await engine.within(driver, tx).guard(schema, held.held)
      if (state !== 'held') throw held.lose(state)
    },
    renew: () => held.renew(),
    async release(tx) {
      const joined = tx === undefined ? undefined : engine.within(driver, tx)
      return (await held.release(joined)) === 'released'
    },
    [Symbol.asyncDispose]: async () => {
      await lease.release()
    },
  }
  return lease
}
