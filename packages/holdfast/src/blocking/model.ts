/** Who blocks whom, as plain data: it can be sent as JSON. The rest of what an observer sees is in `observe/model.ts`. */

/** Where the name of a lock is from. */
export type NameSource =
  /** The holder shows it in its application_name, and its hash is the lock. */
  | 'annotation'
  /** A process noted it in the database. */
  | 'registry'
  /** This very process has used it, or has seen it named. */
  | 'process'
  /** Holdfast's own lock of a known meaning: an installer, a leader, a key of `once`. */
  | 'known'
  /** A table, an index: the server's catalogue names it. */
  | 'catalogue'
  /** On MariaDB and MySQL: a lock is a row of `holdfast_lock`, which is called like the key. */
  | 'row'
  /** Nobody named it. */
  | 'none'

/** A lock that somebody holds or waits for. */
export interface ObservedLock {
  readonly kind: 'named' | 'advisory' | 'row' | 'table' | 'transaction' | 'other'
  /** For people: `cart:7`, `row of public.orders`, `advisory 42 (not ours)`. */
  readonly name: string
  readonly source: NameSource
  /** Of a named lock: the part that is the same for all its keys. */
  readonly namespace?: string
  /** Of an advisory lock: `1:<bigint>` or `2:<high>,<low>`. */
  readonly id?: string
  /** Of a row or table lock. */
  readonly table?: string
  /**
   * Of a row lock, where the server tells: on PostgreSQL its place, as `WHERE ctid = '(0,7)'` finds it; on MariaDB and MySQL
   * the values of the index it is locked in, as in `PRIMARY: 7`.
   */
  readonly row?: string
  /** Of a lock of Holdfast's own: what is done under it. */
  readonly meaning?: string
  /** As the server says it: `ExclusiveLock`, `ShareLock`, …; `X,REC_NOT_GAP`, `S`, … */
  readonly mode: string
  /**
   * No server tells when a lock was granted. Not longer ago than this: the age of the transaction, or what the row of a named
   * lock says; absent where the lock may be older than that, or for one that is waited for.
   */
  readonly heldAtMostMs?: number
}

/** One edge of the tree: who stands in the way. */
export interface Block {
  /** 0 is a prepared transaction, which has no session. */
  readonly pid: number
  /** `hard`: holds what is wanted. `soft`: waits for it too, further ahead in the queue. */
  readonly kind: 'hard' | 'soft'
}

/** Something to do about what is seen. */
export interface Advice {
  readonly code:
    | 'idle-in-transaction'
    | 'held-across-io'
    | 'long-transaction'
    | 'order-violated'
    | 'missing-claim-index'
    | 'claims-broken'
    | 'deadlock-ahead'
    | 'blocker-not-told'
    | 'prepared-transaction'
    | 'xmin-held-back'
    | 'hold-leak'
    | 'claim-stranded'
    | 'schedule-late'
    | 'schedule-failed'
  /** One sentence: what is wrong. */
  readonly what: string
  /** One sentence: what to do. */
  readonly fix: string
}

/** A session that blocks, is blocked, or was asked for. Parallel workers are part of their leader. */
export interface ObservedSession {
  /** 0 stands for all prepared transactions of the database, which have no session. */
  readonly pid: number
  /**
   * When it connected. MariaDB and MySQL do not tell that, and number sessions anew only when they are started: there it is
   * when the server was. With the pid it names one session, also after the pid was used again.
   */
  readonly startedAt?: string
  /** The server hides state, ages and query of others from this role, until it gets pg_read_all_stats. */
  readonly hidden: boolean
  /** Only of a session of another database. */
  readonly database?: string
  /** Its application_name without our label. */
  readonly application: string
  /** What our label says it locked, as long as it fits: `cart:7 +2`. */
  readonly label?: string
  readonly user: string
  readonly client?: string
  readonly state: string
  /** How long it has been in that state. */
  readonly stateMs: number
  /** When its transaction began: with pid and `startedAt` it names one transaction. Absent without one. */
  readonly transactionStartedAt?: string
  /**
   * On MariaDB and MySQL, which tell moments to the second only, names its transaction beside `transactionStartedAt`; in none,
   * its statement.
   */
  readonly transactionId?: string
  readonly transactionMs?: number
  readonly query: string
  readonly queryMs?: number
  /** Everything advisory that it holds, and whatever others wait for. */
  readonly holds: readonly ObservedLock[]
  /** What it waits for, and for how long. */
  readonly waitsFor?: ObservedLock
  readonly waitingMs?: number
  /** Everybody who holds it, and of those who wait further ahead the eight that came last. */
  readonly blockedBy: readonly Block[]
  /** How many sessions wait for this one, directly or not. */
  readonly waiters: number
  readonly advice: readonly Advice[]
}

/** Who blocks whom, right now. */
export interface LockTree {
  readonly at: string
  /**
   * Those whom others wait for and who wait for nobody; of a circle the one that has waited longest. The
   * one with most waiters first. Last those who wait for somebody that the server does not tell.
   */
  readonly roots: readonly number[]
  /** Everybody who blocks or is blocked, and everybody who holds a named lock. */
  readonly sessions: readonly ObservedSession[]
  /** There are more locks than were read. What is waited for was read first. */
  readonly capped: boolean
  /** How long the server took to tell, as seen from here. */
  readonly tookMs: number
}

/** Long transactions, and who keeps vacuum from cleaning up. */
export interface TransactionReport {
  readonly at: string
  readonly longest: readonly ObservedSession[]
  readonly oldestXmin?: {
    readonly age: number
    readonly by: 'session' | 'prepared' | 'slot' | 'standby'
    readonly who: string
    readonly pid?: number
  }
  readonly advice: readonly Advice[]
}

/** A key that many wait for. */
export interface HotKey {
  readonly name: string
  readonly namespace?: string
  readonly waiting: number
  readonly longestWaitMs: number
}
