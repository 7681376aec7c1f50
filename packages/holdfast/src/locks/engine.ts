/** What this room asks of a database. Each engine that has named locks brings one `LockEngine`. */
import type { Driver, Executor, Row, Statement, Transaction } from '../core/driver.ts'
import type { EngineName } from '../core/engine.ts'
import type { LockMemory } from '../core/locks/lock-memory.ts'
import type { OrderSeen, OrderWatch } from '../core/locks/order-watch.ts'
import type { LockKey, LockMode, WantedLock } from '../core/locks/wanted-lock.ts'
import type { Blocker } from '../core/events/event-map.ts'
import type { EndedBy } from '../core/errors/error-details.ts'

/** Why a lock would protect nothing here. */
export type LockRefusal =
  | 'DRIVER_HANDLE_INVALID'
  | 'ENGINE_LOCKS_ARE_STUBS'
  | 'ENGINE_ONE_SESSION'
  | 'LOCK_ON_STANDBY'
  | 'LOCK_OUTSIDE_TRANSACTION'
  | 'LOCK_STALE_SNAPSHOT'

/** How locks are asked for. */
export interface LockTerms {
  /** Take what is free and do not wait. */
  readonly attempt: boolean
  /** Longest wait for all keys together; `undefined` sets none. */
  readonly limitMs: number | undefined
  /** The limit that the caller's transaction has for locks counts too, if it is shorter. */
  readonly yields: boolean
  /** Milliseconds from the start of the transaction that the wait may not exceed. */
  readonly budgetMs: number | undefined
  /** Shown to whoever looks at the server while the transaction lasts. */
  readonly label: string | undefined
  readonly allowStaleSnapshot: boolean
}

/** One granted lock, by the number that the engine knows it by. */
export interface LockToken {
  readonly mode: LockMode
  /** Numbers of different spaces are different locks. */
  readonly space: number
  readonly id: bigint
}

export interface LockAnswer {
  /** Why what is granted here is worth nothing. */
  readonly refused: LockRefusal | undefined
  /** What this transaction held before, oldest first. */
  readonly before: readonly LockToken[]
  /** The tokens of tables whose rows were locked through Holdfast before this. */
  readonly rowsBefore: readonly string[]
  /** What was granted, in the order it was taken. */
  readonly granted: readonly LockToken[]
  /** Every key was granted. */
  readonly complete: boolean
  /** The session that has them, as the server numbers it. */
  readonly pid: number
  /** The server took BEGIN and the question as one message, so nobody can have ended the transaction in between. */
  readonly withBegin?: boolean
}

/** Who was in the way of a wait, and what ended it; as far as that can be found out in time. */
export interface Contended {
  readonly blockers: readonly Blocker[]
  readonly endedBy: EndedBy | undefined
}

/** Where a wait was that has failed. */
export interface FailedWait<Tx> {
  readonly transaction: Transaction<Tx>
  /** A savepoint was set before, so the transaction can still be asked. */
  readonly kept: boolean
  /** The caller's transaction, which may have settings that no other connection has. */
  readonly joined: boolean
  /** Its first statement was sent together with BEGIN. */
  readonly opened: boolean
  readonly waitedMs: number
}

/** One acquisition of some locks: asked for once or, where a client sends the first question with BEGIN, twice. */
export interface Taking<Tx> {
  /** The statement that takes them as the first of a transaction, if there is one. */
  opening(terms: LockTerms): Statement | undefined
  /** Takes them. `opened` is what `opening` answered. */
  take(
    transaction: Transaction<Tx>,
    terms: LockTerms,
    opened?: Promise<readonly Row[]>,
  ): Promise<LockAnswer>
  /** If the error of `take` means that the wait is over: who was in the way. Nothing if it means something else. */
  ended(error: unknown, terms: LockTerms, failed: FailedWait<Tx>): Promise<Contended | undefined>
  /** Who was in the way of one that did not wait, asked in its own transaction. */
  inTheWay(transaction: Transaction<Tx>): Promise<readonly Blocker[]>
}

export interface LockEngine {
  /** Whose it is; a driver for another product is refused. */
  readonly of: EngineName
  taking<Tx>(driver: Driver<Tx>, wanted: readonly WantedLock[]): Taking<Tx>
  /** Whether this transaction holds the key, in the mode or a stronger one; by the server, not by what was noted. */
  isHeld<Tx>(transaction: Transaction<Tx>, key: LockKey, mode: LockMode): Promise<boolean>
  /** Whether this transaction holds anything; never true outside one. */
  holdsAny<Tx>(transaction: Transaction<Tx>): Promise<boolean>
  /** Which of these sessions still hold these locks. */
  stillHeld(
    executor: Executor,
    holds: readonly { readonly pid: number; readonly token: LockToken }[],
  ): Promise<ReadonlySet<number>>
  /** Who has the key now; nothing if there is no answer in time. */
  holders(executor: Executor, key: LockKey): Promise<readonly Blocker[] | undefined>
  /** What the order watch compares: namespaces, kinds of legacy keys, tables. */
  seen(answer: LockAnswer, memory: LockMemory, watch: OrderWatch): OrderSeen
}
