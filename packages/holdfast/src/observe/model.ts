/**
 * What an observer sees, as plain data: it can be sent as JSON, and the command line and the console show
 * nothing else. Times are ISO strings of the server's clock, lengths are milliseconds, and amounts and lock
 * numbers, which JSON cannot carry, are decimal strings.
 */
import type { Advice } from '../blocking/model.ts'

export type * from '../blocking/model.ts'

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

/** Use of the locks of one namespace over several minutes. */
export interface LockTotal {
  readonly namespace: string
  readonly acquired: number
  readonly timeouts: number
  readonly busy: number
  /** Of all these minutes together, from their buckets. */
  readonly wait: Percentiles
  readonly hold: Percentiles
}

/** What a histogram says. */
export interface Percentiles {
  readonly count: number
  /** How many there were in each bucket; what several minutes have in common is worked out from these. */
  readonly buckets?: readonly number[]
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
