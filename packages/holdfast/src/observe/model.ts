/**
 * What an observer sees, as plain data: it can be sent as JSON, and the command line and the console show
 * nothing else. Times are ISO strings of the server's clock, lengths are milliseconds, and amounts and lock
 * numbers, which JSON cannot carry, are decimal strings.
 */

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
  /** A table, an index: PostgreSQL's catalogue names it. */
  | 'catalogue'
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
  /** Of a row lock, where PostgreSQL tells: its place, as `WHERE ctid = '(0,7)'` finds it. */
  readonly row?: string
  /** Of a lock of Holdfast's own: what is done under it. */
  readonly meaning?: string
  /** As pg_locks says it: `ExclusiveLock`, `ShareLock`, … */
  readonly mode: string
  /**
   * PostgreSQL does not tell when a lock was granted. Not longer ago than this, the age of the
   * transaction; absent where the lock may be older than that, or for one that is waited for.
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
  /** When it connected: with the pid it names one session, also after the pid was used again. */
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
   * one with most waiters first.
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

/** Use of the locks of one namespace in one minute, from all processes that record. */
export interface LockMinute {
  readonly minute: string
  readonly namespace: string
  readonly acquired: number
  readonly timeouts: number
  readonly busy: number
  /** Percentiles out of buckets, in milliseconds; absent where nothing was counted. */
  readonly wait: Percentiles
  readonly hold: Percentiles
}

/** What a histogram says. */
export interface Percentiles {
  readonly count: number
  readonly p50?: number
  readonly p95?: number
  readonly p99?: number
  readonly max?: number
}

/** A name that was seen lately. */
export interface SeenName {
  readonly id: string
  readonly name: string
  readonly namespace: string
  readonly seenAt: string
}

/** One book of the ledger. */
export interface BookSummary {
  readonly book: string
  /** At most the number counted up to; see `capped`. */
  readonly accounts: number
  readonly capped: boolean
  /** Of the first holds to end, over all books; see `capped`. */
  readonly openHolds: number
  readonly overdueHolds: number
  /** How long the oldest of them is overdue. */
  readonly oldestOverdueMs?: number
  readonly advice: readonly Advice[]
}

/** What an account stands at. */
export interface ObservedAccount {
  readonly book: string
  readonly key: string
  readonly scope: string
  readonly windowStart?: string
  readonly windowEnd?: string
  readonly credited: string
  readonly debited: string
  readonly held: string
  readonly allowance: string
  readonly available: string
  readonly limitIsSet: boolean
  readonly sequence: string
  readonly movedAt?: string
  readonly dueAt?: string
  /** Difference between the counters and the last movement: `0` unless something is broken. */
  readonly drift: string
}

/** One line of the history of an account. */
export interface ObservedMovement {
  readonly sequence: string
  readonly at: string
  readonly kind: string
  readonly credit: string
  readonly debit: string
  readonly hold: string
  readonly available: string
  readonly operationId: string
  readonly holdId?: string
  readonly grantId?: string
  /** The caller's words, as JSON. */
  readonly note?: string
  readonly windowStart?: string
}

/** An amount that is put aside. */
export interface ObservedHold {
  readonly book: string
  readonly key: string
  readonly scope: string
  readonly holdId: string
  readonly amount: string
  readonly expiresAt: string
  readonly overdue: boolean
  /** How long it is overdue; nobody has touched the account or swept since. */
  readonly overdueMs?: number
  readonly operationId: string
}

/** A grant of credit. */
export interface ObservedGrant {
  readonly grantId: string
  readonly amount: string
  readonly remaining: string
  readonly priority: number
  /** `pending` has not begun. */
  readonly state: 'pending' | 'active'
  readonly expiresAt?: string
  /** The features it can be spent on; absent if on anything. */
  readonly onlyFor?: readonly string[]
}

/** A key of a book, and what it stands at. */
export interface ObservedKey {
  readonly key: string
  readonly scope: string
  readonly credited: string
  readonly debited: string
  readonly held: string
  readonly allowance: string
  readonly available: string
  /** A hold or grant has fallen due and is not booked yet. */
  readonly due: boolean
  readonly movedAt?: string
  /** Of a book with calendar windows: the last that has begun. */
  readonly windowStart?: string
  readonly windowEnd?: string
}

/** What was used for one feature. */
export interface ObservedUsage {
  /** Absent for what named none. */
  readonly feature?: string
  /** What was taken or settled, less what was refunded. */
  readonly used: string
  readonly refunded: string
  /** How much of it went beyond the limit, or below zero. */
  readonly over: string
  readonly movements: number
}

/** Somebody who reads movements as they come. */
export interface ObservedFollower {
  readonly name: string
  /** Absent if of all books. */
  readonly book?: string
  readonly since: string
  /** What was committed by then was read; absent: nothing yet. */
  readonly readUpTo?: string
}

/** A lease, held or free. */
export interface ObservedLease {
  readonly scope: string
  readonly name: string
  readonly token: string
  readonly held: boolean
  readonly note?: string
  readonly acquiredAt?: string
  readonly expiresAt?: string
}

/** A schedule and its latest ticks. */
export interface ObservedSchedule {
  readonly name: string
  /** For people: `cron 0 3 * * * (UTC)`, `every 5 min`; absent if it ticks only when it is asked to. */
  readonly rule?: string
  /** The latest tick that was taken or passed over. */
  readonly lastTick?: string
  /** The next one by its rule. */
  readonly next?: string
  /** How long ago a tick was due that nobody has taken. */
  readonly lateMs?: number
  readonly paused: boolean
  readonly running: number
  readonly waiting: number
  readonly ticks: readonly ObservedTick[]
  readonly advice: readonly Advice[]
}

/** What became of one scheduled instant. */
export interface ObservedTick {
  readonly at: string
  readonly state: string
  readonly manual: boolean
  readonly attempt: number
  readonly holder?: string
  readonly startedAt?: string
  readonly finishedAt?: string
  readonly leaseUntil?: string
  readonly missed?: number
  readonly error?: string
}

/** One table that rows are claimed from. */
export interface ObservedClaims {
  readonly table: string
  /** Of the ready-made table: each queue is reported by itself. */
  readonly queue?: string
  /**
   * At most the number counted up to; see `capped`. Absent, like the others, where no index could count
   * them and the table is too large to be read.
   */
  readonly ready?: number
  readonly claimed?: number
  readonly dead?: number
  readonly capped: boolean
  /** How long the oldest row could have been claimed, where a column says since when. */
  readonly oldestReadyMs?: number
  /** Claims whose lease is over and that nobody has given back. */
  readonly stranded?: number
  readonly oldestStrandedMs?: number
  readonly advice: readonly Advice[]
}

/** A key that many wait for. */
export interface HotKey {
  readonly name: string
  readonly namespace?: string
  readonly waiting: number
  readonly longestWaitMs: number
}
