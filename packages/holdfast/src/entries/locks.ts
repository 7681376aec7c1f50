/** `holdfast/locks`: named locks, on PostgreSQL. */
import type { Driver } from '../core/driver.ts'
import { postgresLocks } from '../engines/postgres/locks/taking.ts'
import { type LockOptions, type Locks, locksOver } from '../locks/locks.ts'

export { inScope, legacyKey, lockKey } from '../core/locks/lock-key.ts'
export type { KeyPart, LockKey } from '../core/locks/wanted-lock.ts'
export { type LockNamespace, lockNamespace, lockNamespaces } from '../core/locks/lock-namespace.ts'
export type { WantedLock } from '../core/locks/wanted-lock.ts'
export type { HeldLongEvent } from '../core/events/event-map.ts'
export { assertGuardOptions } from '../locks/assert-guard-options.ts'
export type { AcquireOptions } from '../locks/acquire-options.ts'
export {
  type GuardOptions,
  type LockOptions,
  type Locks,
  shared,
  type TryGuarded,
  type TryGuardOptions,
} from '../locks/locks.ts'
export type { LockInput } from '../locks/wanted-locks.ts'

/** Named locks over a driver. */
export function createLocks<Tx>(driver: Driver<Tx>, options: LockOptions = {}): Locks<Tx> {
  return locksOver(postgresLocks, driver, options)
}
