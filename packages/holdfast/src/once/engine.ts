/** What this room asks of a database. Each engine that remembers what was done brings one `OnceEngine`. */
import type { Driver, Transaction } from '../core/driver.ts'
import type { EngineName } from '../core/engine.ts'
import type { WaitTerms } from '../core/options/wait.ts'
import type { Blocker } from '../core/events/event-map.ts'
import type { LockId } from '../core/locks/wanted-lock.ts'

/** A key, what it is unique within, and the hash of what came with it. */
export interface OnceNames {
  readonly key: string
  readonly scope: string
  readonly fingerprint: string | undefined
}

/** What is known of a key. */
export type OnceState =
  /** Nothing: the key is this transaction's until it ends, and the body has to run. */
  | 'new'
  /** Somebody is at it; only told where nobody waits. */
  | 'busy'
  /** The key was used for something else. */
  | 'mismatch'
  /** It was done; the result as JSON, `undefined` if there is none. */
  | { readonly done: string | undefined }

/** The keys of one database. Of each: without its tables it fails with SCHEMA_MISSING. */
export interface OnceKeys<Tx> {
  /**
   * Takes a key in a transaction of ours, or in the caller's, which must really be open.
   *
   * @throws ONCE_TIMEOUT with whoever is in the way, ONCE_OUTSIDE_TRANSACTION
   */
  begin(
    transaction: Transaction<Tx>,
    names: OnceNames,
    wait: WaitTerms,
    whose: 'ours' | 'callers',
  ): Promise<OnceState>
  /** Writes down the result of a key that this transaction has. */
  store(
    transaction: Transaction<Tx>,
    names: OnceNames,
    json: string | undefined,
    keepMs: number,
  ): Promise<void>
  /** Forgets keys whose time is up, at most so many, and says how many. @throws TX_NESTED */
  forget(most: number): Promise<number>
  /** Who has the key now; nobody if there is no answer in time. */
  holders(names: OnceNames): Promise<readonly Blocker[]>
  /** The lock under which the work is done, as whoever looks at locks sees it. */
  lock(names: OnceNames): LockId
}

export interface OnceEngine {
  readonly of: EngineName
  /** The keys that are in a schema of the database that a driver leads to. */
  keys<Tx>(driver: Driver<Tx>, schema: string): OnceKeys<Tx>
}
