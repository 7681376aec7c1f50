/** What claims, leases, schedules and once publish; see `event-map.ts`. */

export interface ClaimsClaimedEvent {
  readonly table: string
  readonly asked: number
  readonly count: number
  readonly durationMs: number
  readonly joined: boolean
}

/** One statement for all claims that ended, or were prolonged, together. */
export interface ClaimsFinishedEvent {
  readonly table: string
  readonly verb: 'complete' | 'fail' | 'release' | 'heartbeat'
  readonly kept: number
  readonly lost: number
  /** Of `kept`, those that had their last attempt. */
  readonly dead: number
  readonly durationMs: number
  readonly joined: boolean
}

export interface ClaimsHandledEvent {
  readonly table: string
  readonly outcome: 'done' | 'failed' | 'lost' | 'stopped'
  readonly attempt: number | undefined
  /** Of the handler. */
  readonly durationMs: number
}

/** What is published on `holdfast:claims.lost`. */
export interface ClaimsLostEvent {
  readonly table: string
  /** How many. */
  readonly count: number
  /** What was asked for when it was found out. */
  readonly verb: ClaimsFinishedEvent['verb'] | 'deadline'
}

/** What is published on `holdfast:claims.intervened`: somebody did something about dead rows. */
export interface ClaimsIntervenedEvent {
  readonly table: string
  readonly verb: 'retry' | 'delete'
  /** Rows that were named. */
  readonly asked: number
  /** Rows for which it was done. */
  readonly done: number
  /** Who it was, if they said so. */
  readonly by: string | undefined
}

export interface ClaimsRecoveredEvent {
  readonly table: string
  readonly freed: number
  readonly dead: number
}

/** What is published on `holdfast:claims.trouble`. */
export interface ClaimsTroubleEvent {
  readonly table: string
  readonly during: 'claim' | 'handler' | 'finish' | 'heartbeat' | 'recover' | 'listen' | 'pool'
  readonly error: unknown
}

export interface LeaseAcquiredEvent {
  readonly name: string
  readonly token: bigint
  readonly waitMs: number
}

export interface LeaseRenewedEvent {
  readonly name: string
  readonly token: bigint
  readonly durationMs: number
}

/** Of `release(tx)` it is told when it was asked for: the transaction may still roll back. */
export interface LeaseReleasedEvent {
  readonly name: string
  readonly token: bigint
  readonly heldMs: number
}

export interface LeaseBusyEvent {
  readonly name: string
  /** For how long it is taken for certain. */
  readonly freeInMs: number
}

export interface LeaseTimeoutEvent {
  readonly name: string
  readonly waitMs: number
}

/**
 * Why a lease is no longer held. `deadline`: no renewal got through in time, so the work has to stop
 * before somebody else may begin. `expired`, `taken`, `released`, `unknown`: the server said so.
 * `connection`, `unlocked`: the session that held the lock is gone, or does not hold it. `moved`: the bucket of
 * a leader by session leaves its server, and the lock cannot go with it.
 */
export type LossReason =
  | 'deadline'
  | 'expired'
  | 'taken'
  | 'released'
  | 'unknown'
  | 'connection'
  | 'unlocked'
  | 'moved'

/** Published on `holdfast:lease.lost`. */
export interface LeaseLostEvent {
  readonly name: string
  readonly token: bigint
  readonly reason: LossReason
}

/** Published on `holdfast:lease.renewal-failed`; another try follows, until the deadline. */
export interface RenewalFailedEvent {
  readonly name: string
  readonly token: bigint
  /** Until the signal is aborted. */
  readonly remainingMs: number
  readonly error: unknown
}

export interface LeaderElectedEvent {
  readonly name: string
  readonly token: bigint
}

export interface LeaderEndedEvent {
  readonly name: string
  readonly token: bigint
  readonly termMs: number
  /** `over`: the body has ended or was told to stop. `failed`: it threw. */
  readonly reason: 'over' | 'failed' | 'lost'
}

/** Published on `holdfast:leader.trouble`: a try, or a term that was lost, ended with an error. */
export interface LeaderTroubleEvent {
  readonly name: string
  readonly during: 'campaign' | 'term' | 'resigning'
  readonly error: unknown
}

export interface TickEvent {
  readonly schedule: string
  readonly outcome: string
  readonly at: Date | undefined
  readonly manual: boolean
  readonly attempt: number
  /** How late the handler began, by the server's clock; 0 if it did not run here. */
  readonly lateMs: number
  /** From taking the tick to writing its end down. */
  readonly durationMs: number
  readonly error?: unknown
}

/** What is published on `holdfast:schedule.trouble`: the database could not be asked. */
export interface ScheduleTrouble {
  readonly schedule: string
  readonly error: unknown
  /** When it is tried again. */
  readonly retryInMs: number
}

export interface OnceEvent {
  readonly key: string
  readonly scope: string
  readonly durationMs: number
  readonly joined: boolean
}

export interface OnceRefusedEvent extends OnceEvent {
  readonly reason: 'mismatch' | 'in-progress'
}
