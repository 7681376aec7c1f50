import type { OrderStep } from '../locks/order-graph.ts'
import type {
  ClaimsClaimedEvent,
  ClaimsFinishedEvent,
  ClaimsHandledEvent,
  ClaimsIntervenedEvent,
  ClaimsLostEvent,
  ClaimsRecoveredEvent,
  ClaimsTroubleEvent,
  LeaderElectedEvent,
  LeaderEndedEvent,
  LeaderTroubleEvent,
  LeaseAcquiredEvent,
  LeaseBusyEvent,
  LeaseLostEvent,
  LeaseReleasedEvent,
  LeaseRenewedEvent,
  LeaseTimeoutEvent,
  OnceEvent,
  OnceRefusedEvent,
  RenewalFailedEvent,
  ScheduleTrouble,
  TickEvent,
} from './work-events.ts'
import type { LockKey } from '../locks/wanted-lock.ts'

export type * from './work-events.ts'

/**
 * What is published, by the name of the channel without its prefix `holdfast:`. Lengths are
 * milliseconds of this process's own clock. docs/events.md is held to this by a test.
 */
export interface EventMap {
  readonly 'claims.claimed': ClaimsClaimedEvent
  readonly 'claims.finished': ClaimsFinishedEvent
  readonly 'claims.handled': ClaimsHandledEvent
  readonly 'claims.intervened': ClaimsIntervenedEvent
  readonly 'claims.lost': ClaimsLostEvent
  readonly 'claims.recovered': ClaimsRecoveredEvent
  readonly 'claims.trouble': ClaimsTroubleEvent
  readonly error: ErrorEvent
  readonly 'leader.elected': LeaderElectedEvent
  readonly 'leader.ended': LeaderEndedEvent
  readonly 'leader.trouble': LeaderTroubleEvent
  readonly 'lease.acquired': LeaseAcquiredEvent
  readonly 'lease.busy': LeaseBusyEvent
  readonly 'lease.lost': LeaseLostEvent
  readonly 'lease.released': LeaseReleasedEvent
  readonly 'lease.renewal-failed': RenewalFailedEvent
  readonly 'lease.renewed': LeaseRenewedEvent
  readonly 'lease.timeout': LeaseTimeoutEvent
  readonly 'ledger.audited': LedgerAuditedEvent
  readonly 'ledger.batch': LedgerBatchEvent
  readonly 'ledger.followed': FollowedEvent
  readonly 'ledger.operation': LedgerOperationEvent
  readonly 'ledger.sweep': SweepEvent
  readonly 'lock.acquired': LockAcquiredEvent
  readonly 'lock.busy': LockBusyEvent
  readonly 'lock.failed': LockFailedEvent
  readonly 'lock.held-long': HeldLongEvent
  readonly 'lock.order': LockOrderEvent
  readonly 'lock.released': LockReleasedEvent
  readonly 'lock.requested': LockRequestedEvent
  readonly 'lock.timeout': LockTimeoutEvent
  readonly 'observe.recorded': RecordedEvent
  readonly 'observe.trouble': ObserveTroubleEvent
  readonly 'once.ran': OnceEvent
  readonly 'once.refused': OnceRefusedEvent
  readonly 'once.replayed': OnceEvent
  readonly 'quota.denied': QuotaDeniedEvent
  readonly 'rows.busy': RowsRefusedEvent
  readonly 'rows.conflict': RowsConflictEvent
  readonly 'rows.locked': RowsLockedEvent
  readonly 'rows.table-locked': TableLockedEvent
  readonly 'rows.timeout': RowsRefusedEvent
  readonly 'schedule.tick': TickEvent
  readonly 'schedule.trouble': ScheduleTrouble
  readonly 'tx.committed': TxEvent
  readonly 'tx.retry': TxRetryEvent
  readonly 'tx.rolled-back': TxFailedEvent
  readonly 'tx.root-client': RootClientEvent
  readonly 'tx.unknown': TxFailedEvent
}

/** What a message is known by. */
export type EventName = keyof EventMap

/** A session that stands in the way, as PostgreSQL showed it when the error was raised. */
export interface Blocker {
  /** Backend process id; what `pg_cancel_backend` takes. 0 of a prepared transaction, which has no session. */
  readonly pid: number
  /** Name of the Holdfast lock it holds, or its application name if it was not annotated; of a prepared one its gid. */
  readonly name: string
  /** Age of its transaction in milliseconds. */
  readonly ageMs: number
  /** `active`, `idle in transaction`, `prepared`, … */
  readonly state: string
  /** Its current or last statement, as the server shows it to this role. */
  readonly query: string
}

/** Which locks. All events of one acquisition carry the same `locks`, so it tells them apart. */
export interface LockRequestedEvent {
  readonly names: readonly string[]
  readonly locks: readonly { readonly key: LockKey; readonly mode: 'exclusive' | 'shared' }[]
}

export interface LockAcquiredEvent extends LockRequestedEvent {
  /** As PostgreSQL numbers them: the space (1 bigint, 2 pair) and the number there. */
  readonly granted: readonly {
    readonly mode: 'exclusive' | 'shared'
    readonly space: 1 | 2
    readonly id: bigint
  }[]
  /** Of the backend. */
  readonly pid: number
  /**
   * From sending to the answer: a round trip if nobody stood in the way. Of a guard that waited in its process for
   * another guard of the same key, from its arrival there.
   */
  readonly waitMs: number
}

export interface LockReleasedEvent extends LockRequestedEvent {
  readonly pid: number
  /** From the grant to the end of the transaction, as seen from here. */
  readonly heldMs: number
}

export interface LockTimeoutEvent extends LockRequestedEvent {
  readonly waitMs: number
  readonly blockers: readonly Blocker[]
}

export interface LockBusyEvent extends LockRequestedEvent {
  readonly waitMs: number
}

export interface LockFailedEvent extends LockRequestedEvent {
  readonly waitMs: number
  readonly error: unknown
}

/** Published on `holdfast:lock.held-long`. */
export interface HeldLongEvent {
  readonly level: 'warning' | 'error'
  readonly names: readonly string[]
  readonly locks: LockRequestedEvent['locks']
  readonly heldMs: number
  readonly pid: number
  /** Stack of the call that took the lock. */
  readonly takenAt: string
}

/** Orders that were seen, of which the first has just closed the cycle. Each pair is told once. */
export interface LockOrderEvent {
  readonly fault: 'out-of-order' | 'upgrade' | 'rows-first'
  /** Both sides, or all of a longer cycle, each with the line of the caller that did it first. */
  readonly cycle: readonly OrderStep[]
  readonly names: readonly string[]
  readonly locks: LockRequestedEvent['locks']
  /** The cycle in words, without keys. */
  readonly subject: string
  /** Not known where rows closed the cycle. */
  readonly pid: number | undefined
}

export interface RowsLockedEvent {
  readonly table: string
  readonly strength: 'update' | 'no key update' | 'share' | 'key share'
  readonly locked: number
  readonly missing: number
  readonly skipped: number
  readonly waitMs: number
}

export interface TableLockedEvent {
  readonly table: string
  readonly mode: string
  readonly waitMs: number
}

export interface RowsRefusedEvent {
  readonly table: string
  readonly waitMs: number
  readonly blockers: readonly Blocker[]
}

export interface RowsConflictEvent {
  readonly table: string
  readonly reason: 'changed' | 'missing'
}

export interface TxEvent {
  /** What opened it: `guard`, `tx`, `once`, … */
  readonly room: string
  readonly attempts: number
  /** From the call to the end, all attempts and pauses included. */
  readonly durationMs: number
  /** Of the last attempt: until it had a connection and its transaction. */
  readonly openMs: number
}

export interface TxFailedEvent extends TxEvent {
  /** Holdfast code or SQLSTATE; `error` for an error of the body that has neither. */
  readonly reason: string
  readonly error: unknown
}

export interface TxRetryEvent {
  /** The attempt that failed, from 1. Has the same number again if no connection could be had for it. */
  readonly attempt: number
  readonly error: unknown
  /** SQLSTATE or Holdfast code. */
  readonly reason: string
  readonly pauseMs: number
}

/** Operations of one kind of a batch that ended alike. */
export interface LedgerTally {
  readonly book: string
  readonly kind: LedgerKind
  readonly outcome: 'accepted' | 'replayed' | 'refused' | 'failed'
  /** Of a refusal its reason, of a failure its code or SQLSTATE, else empty. */
  readonly reason: string
  readonly count: number
  /** From the call to the answer, all of them added up. */
  readonly sumMs: number
  readonly maxMs: number
  /** How many took up to `latencyBoundsMs[n]`, each counted once; the last has the rest. */
  readonly buckets: readonly number[]
}

export type LedgerKind =
  | 'credit'
  | 'debit'
  | 'hold'
  | 'settle'
  | 'release'
  | 'extend'
  | 'refund'
  | 'grant'
  | 'void'
  | 'adjust'
  | 'opening'
  | 'return'
  | 'limit'
  | 'transfer-out'
  | 'transfer-in'

/** One statement with all operations that it carried. */
export interface LedgerBatchEvent {
  readonly operations: number
  /** Of the statement. */
  readonly durationMs: number
  /** In a transaction of the caller's, which may still roll back. */
  readonly joined: boolean
  /** Operations that go out again on the long way; they are not in `tallies`. */
  readonly leftOut: number
  readonly tallies: readonly LedgerTally[]
}

export interface LedgerOperationEvent {
  readonly book: string
  readonly key: string | undefined
  readonly operationId: string | undefined
  readonly kind: LedgerKind
  readonly outcome: LedgerTally['outcome']
  readonly reason: string
  readonly durationMs: number
  readonly joined: boolean
}

/** What is published on `holdfast:ledger.followed` when a follower has read movements, or could not. */
export interface FollowedEvent {
  /** Who follows. */
  readonly name: string
  /** What the handler got, in transactions that were committed. */
  readonly movements: number
  /** On which of several primaries. */
  readonly primary: string | undefined
  readonly durationMs: number
  /** What went wrong; the follower goes on. */
  readonly error: unknown
}

/** What is published on `holdfast:ledger.sweep` after each call of a sweeper. */
export interface SweepEvent {
  readonly fallen: number
  readonly more: boolean
  /** On which of several primaries. */
  readonly primary: string | undefined
  readonly durationMs: number
  /** What went wrong; the sweeper goes on. */
  readonly error: unknown
}

export interface LedgerAuditedEvent {
  readonly accounts: number
  /** Problems; 0 is what it should be. */
  readonly found: number
  readonly durationMs: number
}

export interface QuotaDeniedEvent {
  readonly book: string
}

/** A body has used the root client instead of the handle it was given. */
export interface RootClientEvent {
  /** The client's package name. */
  readonly client: string
  /** The body was refused; otherwise this is only told. */
  readonly thrown: boolean
  /** TX_ROOT_CLIENT; its stack says where. */
  readonly error: Error
}

export interface ErrorEvent {
  readonly code: string
  readonly error: Error
}

export interface RecordedEvent {
  readonly names: number
  readonly namespaces: number
  readonly durationMs: number
}

export interface ObserveTroubleEvent {
  readonly during: 'record' | 'metrics'
  readonly error: unknown
}
