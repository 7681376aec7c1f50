import { isInnodb } from '../engines/engine.ts'
import type { LockKey } from '../../packages/holdfast/src/core/locks/wanted-lock.ts'

/** What is told of an attempt that is made again. */
export interface Retried {
  readonly reason: string
}

/** How callers are kept apart: by us, by nobody, or by a lock of the session that is released before COMMIT. */
export type Exclusion = 'guard' | 'none' | 'session lock'

/** Locks, and what is done under them, in words that are the same for all products. */
export interface LockStore<Tx> extends AsyncDisposable {
  /** Controls of this product alone. */
  readonly exclusions: readonly Exclusion[]
  prepare(): Promise<void>
  guard<T>(
    keys: LockKey | readonly LockKey[],
    body: (tx: Tx) => Promise<T>,
    options: { readonly wait: number; readonly onRetry: (retried: Retried) => void },
  ): Promise<T>
  transaction<T>(body: (tx: Tx) => Promise<T>): Promise<T>
  /** The control: the lock that many take by hand, around the body and not around its COMMIT. */
  inSessionLock?<T>(tx: Tx, name: string, body: () => Promise<T>): Promise<T>
  /** How many have moved in. */
  takers(tx: Tx, round: number): Promise<number>
  moveIn(tx: Tx, round: number, taker: string): Promise<void>
  /** Rounds in which not exactly one has moved in. */
  overfull(): Promise<readonly { readonly round: number; readonly takers: number }[]>
  /** Some time in a transaction. */
  linger(tx: Tx): Promise<void>
  /** The control: takes these by hand, one by one. Gives whether that was a deadlock. */
  takeInOrder(keys: readonly string[]): Promise<boolean>
  /** The server's own count of deadlocks so far, once everybody else has left. */
  deadlocks(): Promise<number>
}

/** Opens so many connections. The URL says of which product it is. */
export async function openLockStore(url: string, size: number): Promise<LockStore<unknown>> {
  const opened = isInnodb(url)
    ? (await import('./lock-innodb.ts')).innodbLockStore(url, size)
    : await (await import('./lock-postgres.ts')).postgresLockStore(url, size)
  return opened as LockStore<unknown>
}
