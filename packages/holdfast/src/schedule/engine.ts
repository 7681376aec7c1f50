/** What this room asks of a database. Each engine that keeps ticks brings one `ScheduleEngine`. */
import type { Driver, Transaction } from '../core/driver.ts'
import type { EngineName } from '../core/engine.ts'
import type { Overlap } from './options.ts'

/** One tick. Microseconds since 1970 are exact in a number. */
export interface TickKey {
  readonly name: string
  readonly atUs: number
  readonly manual: boolean
}

/** Who wants a tick, and what it may do. */
export interface TickClaim {
  readonly name: string
  /** `undefined`: a manual tick of this moment. */
  readonly atUs: number | undefined
  readonly manual: boolean
  readonly token: string
  readonly holder: string
  readonly leaseMs: number
  readonly overlap: Overlap
  /** Take over one whose lease is over. */
  readonly retake: boolean
  /** Most attempts. */
  readonly most: number
  readonly missed: number
  /** Otherwise it is passed over. */
  readonly run: boolean
  /** The latest tick that was seen taken; whoever does not have it is not asked for the next one. */
  readonly afterUs: number | undefined
}

/** What the database says about a schedule. Microseconds since 1970, by its clock. */
export interface Look {
  readonly nowUs: number
  /** The latest tick that was taken or passed over; `undefined` if there was none at all. */
  readonly lastUs: number | undefined
  readonly paused: boolean
  /** The rule that is noted for those who look at the schedule. */
  readonly rule: string | null
  /** The open tick whose lease, or whose pause before another attempt, ends first. */
  readonly open:
    | { readonly atUs: number; readonly manual: boolean; readonly untilUs: number }
    | undefined
}

/** What became of a claim. */
export type ClaimAnswer =
  | {
      readonly kind: 'claimed'
      readonly attempt: number
      readonly atUs: number
      readonly nowUs: number
    }
  | { readonly kind: 'early'; readonly inMs: number }
  | { readonly kind: 'skipped' | 'lost' | 'busy' | 'taken' | 'passed' | 'paused' }

/** Why an attempt failed, and when there may be another one. */
export interface TickFailure {
  readonly error?: string
  readonly retryMs?: number | undefined
}

/** How an attempt ended, by the database's word. */
export type FinishAnswer = 'done' | 'failed' | 'waiting' | 'lost'

/** What is remembered of a tick. */
export interface HistoryTick {
  readonly at: Date
  readonly manual: boolean
  readonly state: 'running' | 'waiting' | 'done' | 'failed' | 'lost' | 'skipped'
  /** Attempts so far; 0 of one that was skipped. */
  readonly attempts: number
  /** Who made the last one. */
  readonly holder: string
  readonly startedAt: Date
  readonly finishedAt: Date | undefined
  /** Ticks just before this one that nobody took; counted up to a thousand. */
  readonly missed: number
  /** What the last attempt failed with. */
  readonly error: string | undefined
}

/**
 * All that is asked of a database about schedules. Without a transaction each is one of its own, and asked again after
 * a lost connection: the token makes the second answer one to the first. Of each: SCHEMA_MISSING, TX_NESTED.
 */
export interface TickBoard<Tx> {
  /** Makes the schedule known: ticks before that are none of its business, or all of them are `fromEver`. */
  look(name: string, fromEver: boolean): Promise<Look>
  /** In `transaction` the tick is taken when that commits, and nobody else gets it until then. */
  claim(claim: TickClaim, transaction?: Transaction<Tx>): Promise<ClaimAnswer>
  /** Whether it is still ours, and is for so much longer. */
  renew(tick: TickKey, token: string, leaseMs: number): Promise<boolean>
  /** Keeps the tick ours until the caller's transaction ends. @throws SCHEDULE_TICK_LOST, SCHEDULE_OUTSIDE_TRANSACTION */
  guard(tx: Tx, tick: TickKey, token: string): Promise<void>
  /** Remembers `keep` ticks of the schedule. */
  finish(
    tick: TickKey,
    token: string,
    keep: number,
    failure: TickFailure,
    transaction?: Transaction<Tx>,
  ): Promise<FinishAnswer>
  /** Waits for a tick that is at work in a transaction. Whether it changed anything. @throws SCHEDULE_TIMEOUT */
  pause(name: string, pause: boolean, limitMs: number): Promise<boolean>
  /** Tells observers when the schedule ticks. */
  note(name: string, rule: string | null): Promise<void>
  /** The latest, newest first. */
  ticks(name: string, most: number): Promise<HistoryTick[]>
}

export interface ScheduleEngine {
  readonly of: EngineName
  /** The schedules in a schema of the database that a driver leads to; lost answers are asked for so long. */
  board<Tx>(driver: Driver<Tx>, schema: string, forMs: number): TickBoard<Tx>
}
