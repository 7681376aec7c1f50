import type { Driver } from '../core/driver.ts'
import type { EngineName } from '../core/engine.ts'
import type { AdviceWords } from './advice.ts'
import type { Block, ObservedLock, ObservedSession } from './model.ts'

/** What is told of a session by itself. */
export type AboutSession = Omit<
  ObservedSession,
  'holds' | 'waitsFor' | 'waitingMs' | 'blockedBy' | 'waiters' | 'advice'
>

/** A session as an engine has seen it. */
export interface SeenSession {
  readonly about: AboutSession
  /** Of this database; those of others are shown where they are in one tree with one of it. */
  readonly ours: boolean
  /** Locks by name, and whatever others wait for. */
  readonly holds: readonly ObservedLock[]
  /** What it waits for. Whoever is gone since, and itself, is no edge. */
  readonly wait?: SeenWait
}

/** What a session waits for, for how long, and for whom. */
export interface SeenWait {
  readonly lock: ObservedLock
  readonly waitingMs: number
  readonly blockedBy: readonly Block[]
}

/** Everything that was seen at one moment. */
export interface Seen {
  readonly at: string
  readonly sessions: readonly SeenSession[]
  /** There are more locks than were read. */
  readonly capped: boolean
}

/** What a look may take. */
export interface LookLimits {
  readonly statementTimeoutMs: number
}

/** Which transaction of which session is meant, as it was shown. */
export interface MeantTransaction {
  readonly pid: number
  readonly startedAt: string
  readonly transactionStartedAt: string | null
  readonly transactionId: string | undefined
  /** Sessions that call themselves so are left alone. */
  readonly exceptApplication: string | undefined
}

/** What this room needs of an engine; see docs/write-an-engine.md. */
export interface BlockingEngine {
  readonly of: EngineName
  readonly adviceWords: AdviceWords
  /**
   * Whoever has a transaction, blocks, or is blocked; and the session that is asked for. Changes nothing.
   *
   * @throws OBSERVE_TIMEOUT, OBSERVE_RIGHT_MISSING, OBSERVE_NOT_SHOWN
   */
  look<Tx>(driver: Driver<Tx>, asked: number | undefined, limits: LookLimits): Promise<Seen>
  /**
   * Ends the statement that a session is running, or the session, if it is still in the transaction that was seen. False if
   * there was nothing to end.
   *
   * @throws OBSERVE_NO_SUCH_SESSION, OBSERVE_TRANSACTION_OVER, OBSERVE_RIGHT_MISSING
   */
  end<Tx>(
    driver: Driver<Tx>,
    what: 'statement' | 'session',
    meant: MeantTransaction,
  ): Promise<boolean>
}
