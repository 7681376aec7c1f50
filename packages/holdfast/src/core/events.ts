import { type Channel, channel } from 'node:diagnostics_channel'
import type { EventMap, EventName } from './events/event-map.ts'

export const channelPrefix = 'holdfast:'

/** A channel that carries messages of one type. */
export interface EventChannel<N extends EventName> extends Channel {
  /** Never there; says which messages are published. */
  readonly message?: EventMap[N]
}

/** Every event, by channel. docs/events.md lists names and fields. */
export const channels: {
  /** Rows were claimed, or looked for. */
  readonly claimsClaimed: EventChannel<'claims.claimed'>
  /** Claims were completed, failed, given back or prolonged. */
  readonly claimsFinished: EventChannel<'claims.finished'>
  /** A handler of claims has ended. */
  readonly claimsHandled: EventChannel<'claims.handled'>
  /** Somebody had dead rows tried again, or deleted them. */
  readonly claimsIntervened: EventChannel<'claims.intervened'>
  /** Claims were lost: their lease was over. */
  readonly claimsLost: EventChannel<'claims.lost'>
  /** Rows whose lease was over were given back. */
  readonly claimsRecovered: EventChannel<'claims.recovered'>
  /** A worker or a handler of claims failed; the worker goes on. */
  readonly claimsTrouble: EventChannel<'claims.trouble'>
  /** An error of this library was made. */
  readonly error: EventChannel<'error'>
  /** This process leads. */
  readonly leaderElected: EventChannel<'leader.elected'>
  /** This process no longer leads. */
  readonly leaderEnded: EventChannel<'leader.ended'>
  /** Something went wrong in an election; it goes on. */
  readonly leaderTrouble: EventChannel<'leader.trouble'>
  /** A lease was acquired. */
  readonly leaseAcquired: EventChannel<'lease.acquired'>
  /** A lease was not free. */
  readonly leaseBusy: EventChannel<'lease.busy'>
  /** A lease was lost. */
  readonly leaseLost: EventChannel<'lease.lost'>
  /** A lease was given back. */
  readonly leaseReleased: EventChannel<'lease.released'>
  /** A renewal did not get through; another try follows. */
  readonly leaseRenewalFailed: EventChannel<'lease.renewal-failed'>
  /** A lease was renewed. */
  readonly leaseRenewed: EventChannel<'lease.renewed'>
  /** The wait for a lease was too long. */
  readonly leaseTimeout: EventChannel<'lease.timeout'>
  /** An audit has ended. */
  readonly ledgerAudited: EventChannel<'ledger.audited'>
  /** A statement with operations was answered, or failed. */
  readonly ledgerBatch: EventChannel<'ledger.batch'>
  /** An operation was answered, or failed. */
  readonly ledgerOperation: EventChannel<'ledger.operation'>
  /** A sweeper has looked for what is due. */
  readonly ledgerFollowed: EventChannel<'ledger.followed'>
  readonly ledgerSweep: EventChannel<'ledger.sweep'>
  /** Locks were granted. */
  readonly lockAcquired: EventChannel<'lock.acquired'>
  /** A lock was not free, and nobody wanted to wait. */
  readonly lockBusy: EventChannel<'lock.busy'>
  /** Locks were not granted for another reason than time. */
  readonly lockFailed: EventChannel<'lock.failed'>
  /** A lock has been held longer than the watch allows. */
  readonly lockHeldLong: EventChannel<'lock.held-long'>
  /** Locks were taken in an order that can deadlock. */
  readonly lockOrder: EventChannel<'lock.order'>
  /** Locks of a transaction of ours have ended with it. */
  readonly lockReleased: EventChannel<'lock.released'>
  /** Locks are asked for. */
  readonly lockRequested: EventChannel<'lock.requested'>
  /** The wait for locks was too long. */
  readonly lockTimeout: EventChannel<'lock.timeout'>
  /** A recorder has written. */
  readonly observeRecorded: EventChannel<'observe.recorded'>
  /** A recorder or a collection of metrics failed; it goes on. */
  readonly observeTrouble: EventChannel<'observe.trouble'>
  /** A body of `once` ran and its result was stored. */
  readonly onceRan: EventChannel<'once.ran'>
  /** A duplicate of `once` was refused. */
  readonly onceRefused: EventChannel<'once.refused'>
  /** A duplicate of `once` got the stored result. */
  readonly onceReplayed: EventChannel<'once.replayed'>
  /** A remembered refusal was repeated without the database. */
  readonly quotaDenied: EventChannel<'quota.denied'>
  /** Rows or a table were not free, and nobody wanted to wait. */
  readonly rowsBusy: EventChannel<'rows.busy'>
  /** A row was not the version that was read. */
  readonly rowsConflict: EventChannel<'rows.conflict'>
  /** Rows were locked. */
  readonly rowsLocked: EventChannel<'rows.locked'>
  /** A table was locked. */
  readonly rowsTableLocked: EventChannel<'rows.table-locked'>
  /** The wait for rows or a table was too long. */
  readonly rowsTimeout: EventChannel<'rows.timeout'>
  /** A tick of a schedule has ended here, or was dropped. */
  readonly scheduleTick: EventChannel<'schedule.tick'>
  /** A schedule could not ask the database; it goes on. */
  readonly scheduleTrouble: EventChannel<'schedule.trouble'>
  /** A transaction has committed. */
  readonly txCommitted: EventChannel<'tx.committed'>
  /** A transaction is about to be run again. */
  readonly txRetry: EventChannel<'tx.retry'>
  /** A transaction was rolled back for good, or never began. */
  readonly txRolledBack: EventChannel<'tx.rolled-back'>
  /** A body used the root client instead of its handle. */
  readonly txRootClient: EventChannel<'tx.root-client'>
  /** A connection was lost while it committed. */
  readonly txUnknown: EventChannel<'tx.unknown'>
} = {
  claimsClaimed: to('claims.claimed'),
  claimsFinished: to('claims.finished'),
  claimsHandled: to('claims.handled'),
  claimsIntervened: to('claims.intervened'),
  claimsLost: to('claims.lost'),
  claimsRecovered: to('claims.recovered'),
  claimsTrouble: to('claims.trouble'),
  error: to('error'),
  leaderElected: to('leader.elected'),
  leaderEnded: to('leader.ended'),
  leaderTrouble: to('leader.trouble'),
  leaseAcquired: to('lease.acquired'),
  leaseBusy: to('lease.busy'),
  leaseLost: to('lease.lost'),
  leaseReleased: to('lease.released'),
  leaseRenewalFailed: to('lease.renewal-failed'),
  leaseRenewed: to('lease.renewed'),
  leaseTimeout: to('lease.timeout'),
  ledgerAudited: to('ledger.audited'),
  ledgerBatch: to('ledger.batch'),
  ledgerOperation: to('ledger.operation'),
  ledgerFollowed: to('ledger.followed'),
  ledgerSweep: to('ledger.sweep'),
  lockAcquired: to('lock.acquired'),
  lockBusy: to('lock.busy'),
  lockFailed: to('lock.failed'),
  lockHeldLong: to('lock.held-long'),
  lockOrder: to('lock.order'),
  lockReleased: to('lock.released'),
  lockRequested: to('lock.requested'),
  lockTimeout: to('lock.timeout'),
  observeRecorded: to('observe.recorded'),
  observeTrouble: to('observe.trouble'),
  onceRan: to('once.ran'),
  onceRefused: to('once.refused'),
  onceReplayed: to('once.replayed'),
  quotaDenied: to('quota.denied'),
  rowsBusy: to('rows.busy'),
  rowsConflict: to('rows.conflict'),
  rowsLocked: to('rows.locked'),
  rowsTableLocked: to('rows.table-locked'),
  rowsTimeout: to('rows.timeout'),
  scheduleTick: to('schedule.tick'),
  scheduleTrouble: to('schedule.trouble'),
  txCommitted: to('tx.committed'),
  txRetry: to('tx.retry'),
  txRolledBack: to('tx.rolled-back'),
  txRootClient: to('tx.root-client'),
  txUnknown: to('tx.unknown'),
}

function to<N extends EventName>(name: N): EventChannel<N> {
  return channel(channelPrefix + name) as EventChannel<N>
}

/** Publishes only when someone listens, so an idle channel costs one property read. */
export function publish<N extends EventName>(
  on: EventChannel<N>,
  message: NoInfer<EventMap[N]>,
): void {
  if (on.hasSubscribers) on.publish(message)
}

/**
 * Upper bounds, in milliseconds, by which waits and holds are counted everywhere; what is above the
 * last one is counted on its own.
 */
export const latencyBoundsMs: readonly number[] = [
  1, 2, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 5_000, 10_000,
]

/** The first bucket whose bound the value does not exceed. */
export function bucketOf(ms: number): number {
  let at = 0
  while (at < latencyBoundsMs.length && ms > (latencyBoundsMs[at] as number)) at += 1
  return at
}
